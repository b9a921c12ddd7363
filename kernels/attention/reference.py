"""Attention with grouped queries (Vaswani 2017, arXiv:1706.03762; Ainslie 2023, arXiv:2305.13245)."""

import torch


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    skipped: torch.Tensor | None = None,
    *,
    mask: str,
    block: int = 0,
) -> torch.Tensor:
    """q[batch, groups, queries, depth], k, v [batch, keys, depth] -> o as q. Values may have another depth.

    A batch is one head of keys and values of one sequence, which `groups` heads of queries share. With a mask
    the queries are the last of the sequence. With `causal` each sees the keys up to its own; with `window`
    (Jiang et al. 2023, arXiv:2310.06825) only the last of these, as many as the first query sees.
    `skipped` (Child et al. 2019, arXiv:1904.10509) leaves out blocks of `block` keys: those whose number in
    skipped[batch, blocks of queries, blocks of keys] is not 0, but for the block of the first query's own key
    and later ones.
    """
    if skipped is None:
        seen = visible(q.shape[2], k.shape[1], mask, q.device)
    else:
        seen = kept(q.shape[2], k.shape[1], skipped, block).unsqueeze(1)
    k, v = (each.unsqueeze(1).expand(-1, q.shape[1], -1, -1) for each in (k, v))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def visible(queries: int, keys: int, mask: str, device: torch.device) -> torch.Tensor | None:
    """[queries, keys]: which keys a query sees; None if all."""
    if mask == "none" or queries <= 1:
        return None
    seen = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(max(keys - queries, 0))
    return seen.triu() if mask == "window" else seen


def kept(queries: int, keys: int, skipped: torch.Tensor, block: int) -> torch.Tensor:
    """[batch, queries, keys]: which keys a query sees if the mask is causal and leaves out blocks."""
    past = max(keys - queries, 0)
    blocks = torch.arange(skipped.shape[1], device=skipped.device)
    own = ((blocks * block + past) // block).clamp(max=max(skipped.shape[2] - 1, 0))
    computed = (skipped == 0) | (torch.arange(skipped.shape[2], device=skipped.device) >= own[:, None])
    each = computed.repeat_interleave(block, 1)[:, :queries].repeat_interleave(block, 2)[:, :, :keys]
    return each & torch.ones(queries, keys, dtype=torch.bool, device=skipped.device).tril(past)


def reference_varlen(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """q[tokens, heads, groups, depth], k, v [tokens, heads, depth] -> o as q.

    Sequence i has the tokens from ends[i - 1], or the first one, up to, but without, ends[i]; the last of the
    ends is the number of tokens (FlashAttention's cu_seqlens without its 0). A token sees those of its
    sequence up to itself.
    """
    token = torch.arange(len(q), device=q.device)
    sequence = torch.searchsorted(ends, token, right=True)
    seen = (sequence[:, None] == sequence) & (token <= token[:, None])
    q, k, v = (
        q.permute(1, 2, 0, 3),
        *(each.transpose(0, 1)[:, None].expand(-1, q.shape[2], -1, -1) for each in (k, v)),
    )
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen).permute(2, 0, 1, 3)
