"""What estimates in 4 bits are compared with: the exact products of queries and keys."""

import torch

from kernels.block_scores.reference import unpacked


def numbers(
    q: torch.Tensor, k: torch.Tensor, q_scale: torch.Tensor, k_scale: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Called as the reference -> the arguments of `product`. Not part of a call."""
    return unpacked(q, q_scale).flatten(2, 3), unpacked(k, k_scale).flatten(1, 2).unsqueeze(1).mT


def product(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """q[batch, groups, queries, depth], k[batch, 1, depth, keys] -> all scores."""
    return q @ k
