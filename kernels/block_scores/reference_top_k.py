"""Blocks of keys that blocks of queries keep, by their averages: one level of a hierarchical selection.

The first half of log-linear sparse attention (LLSA: Zhou et al. 2025, arXiv:2512.16615), before
`attention_selected`. On the coarsest level all blocks are candidates, which is the list of all parents. On
each finer one they are the children of what a query's parent kept. Each level is a call, so that its
result follows from its inputs alone, and a choice between nearly equal scores changes no other level.

Left out: the averages of 16 tokens, or of 16 averages, which q and k are here.
"""

import torch


def reference(
    q: torch.Tensor, k: torch.Tensor, parents: torch.Tensor, *, block: int, kept: int
) -> torch.Tensor:
    """q[batch, queries, depth], k[batch, keys, depth] -> index[batch, queries, kept], in any order.

    Those with the largest q k of the `block` children of each parent that the list of the query's own parent
    names, in parents[batch, parents of queries, listed]; fewer than `kept` if some lists have fewer. Numbers
    beyond the last parent name none.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).mT
    there, listed = -(-k.shape[1] // block), parents.shape[2]
    named = torch.zeros(*parents.shape[:2], max(there, listed), dtype=torch.bool, device=q.device)
    named.scatter_(2, parents.long(), True)
    candidate = named.repeat_interleave(block, 1).repeat_interleave(block, 2)[:, : q.shape[1], : k.shape[1]]
    scores = scores.masked_fill(~candidate, -torch.inf)
    count = max(min(kept, k.shape[1], (min(listed, there) - 1) * block + 1), 0)
    return scores.topk(count, sorted=False).indices.to(torch.int32)
