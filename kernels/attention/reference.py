"""Attention with grouped queries (Vaswani 2017, arXiv:1706.03762; Ainslie 2023, arXiv:2305.13245)."""

import torch


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, mask: str) -> torch.Tensor:
    """q[batch, groups, queries, depth], k, v [batch, keys, depth] -> o as q.

    A batch is one head of keys and values of one sequence, which `groups` heads of queries share. With the
    mask `causal` the queries are the last of the sequence, and each sees the keys up to its own.
    """
    k, v = (each.unsqueeze(1).expand(-1, q.shape[1], -1, -1) for each in (k, v))
    queries, keys = q.shape[2], k.shape[2]
    seen = None
    if mask == "causal" and queries > 1:
        seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(max(keys - queries, 0))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
