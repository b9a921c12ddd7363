"""Attention of blocks of queries to listed blocks of keys, some of which are averages of tokens.

The second half of log-linear sparse attention (LLSA: Zhou et al. 2025, arXiv:2512.16615), whose first half
`block_top_k` selects the blocks. Keys are the tokens and, after them, averages of 16 tokens, of 16 of these,
and so on. The list of a block of queries has the blocks of tokens that were kept for it and, to preserve what
the others say, those of averages that were scored on the way: the children of what each level kept, and all
of the coarsest level. An average weighs as much as the tokens it stands for; those of them that are listed
count again.

Left out: the averages themselves, and the order of pixels in which blocks are compact.
"""

import torch


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    blocks: torch.Tensor,
    count: torch.Tensor,
    *,
    block: int,
) -> torch.Tensor:
    """q[batch, queries, depth], k, v [batch, keys, depth] -> o as q.

    Softmax of q k^T / sqrt(depth) with weights times count[keys], over the keys of the blocks of `block` that
    blocks[batch, blocks of queries, listed] names. Numbers beyond the last block name none.
    """
    row = (blocks.long()[..., None] * block + torch.arange(block, device=q.device)).flatten(2)
    batch = torch.arange(len(q), device=q.device)[:, None, None]
    inside, row = row < len(count), row.clamp(max=max(len(count) - 1, 0))
    times = count.to(torch.promote_types(q.dtype, torch.float32)).log()
    bias = times[row].masked_fill(~inside, -torch.inf)[:, :, None]
    padded = torch.nn.functional.pad(q, (0, 0, 0, -q.shape[1] % block)).unflatten(1, (-1, block))
    o = torch.nn.functional.scaled_dot_product_attention(padded, k[batch, row], v[batch, row], attn_mask=bias)
    return o.flatten(1, 2)[:, : q.shape[1]]
