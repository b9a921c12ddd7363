"""How much blocks of keys matter to blocks of queries, by 4 bits of each number.

After SALE (Ji et al. 2025, arXiv:2505.24179).
"""

import torch


def reference(q: torch.Tensor, k: torch.Tensor, q_scale: torch.Tensor, k_scale: torch.Tensor) -> torch.Tensor:
    """q[batch, groups, query blocks, block, bytes], k[batch, key blocks, block, bytes] uint8, scales.

    -> score[batch, query blocks, key blocks]: the largest q k / sqrt(depth) of a query and a key that is not
    after it, of all heads of a group; -infinity if there is none. The queries are the last of their sequence.
    Byte i of a row has the codes of its numbers 2i, in the low half, and 2i + 1: number = (code - 8) * scale.
    """
    return largest(unpacked(q, q_scale), unpacked(k, k_scale))


def magnitude(q: torch.Tensor, k: torch.Tensor, q_scale: torch.Tensor, k_scale: torch.Tensor) -> torch.Tensor:
    """The largest |q| |k|: a maximum moves no further than what it is chosen from; 0 where all is hidden."""
    found = largest(unpacked(q, q_scale).abs(), unpacked(k, k_scale).abs())
    return found.masked_fill(found.isneginf(), 0.0)


def largest(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """The scores of q[batch, groups, query blocks, block, depth], k[batch, key blocks, block, depth]."""
    left, right = q.flatten(2, 3), k.flatten(1, 2)
    queries, keys = left.shape[2], right.shape[1]
    scores = (left * left.shape[3] ** -0.5) @ right.unsqueeze(1).mT
    seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(max(keys - queries, 0))
    scores = scores.masked_fill(~seen, -torch.inf)
    return scores.unflatten(3, k.shape[1:3]).unflatten(2, q.shape[2:4]).amax((1, 3, 5))


def unpacked(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """codes[..., bytes], scale[...] -> numbers [..., 2 * bytes] in the type of the scales."""
    pairs = torch.stack((codes & 15, codes >> 4), -1).flatten(-2)
    return (pairs.to(scale.dtype) - 8) * scale.unsqueeze(-1)
