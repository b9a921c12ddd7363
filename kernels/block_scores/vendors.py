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


def gathered(
    q: torch.Tensor, k: torch.Tensor, parents: torch.Tensor, *, block: int, kept: int
) -> torch.Tensor:
    """As the reference of a selection, with the candidates copied in place of a mask of all pairs."""
    child = (parents.long()[..., None] * block + torch.arange(block, device=q.device)).flatten(2)
    batch = torch.arange(len(q), device=q.device)[:, None, None]
    candidates = k[batch, child.clamp(max=k.shape[1] - 1)]
    queries = torch.nn.functional.pad(q, (0, 0, 0, -q.shape[1] % block)).unflatten(1, (-1, block))
    scores = (queries @ candidates.mT).masked_fill((child >= k.shape[1])[:, :, None], -torch.inf)
    place = scores.topk(kept, sorted=False).indices
    index = child[:, :, None].expand_as(scores).gather(-1, place).flatten(1, 2)
    return index[:, : q.shape[1]].to(torch.int32)


def all_blocks(
    q: torch.Tensor, k: torch.Tensor, _parents: torch.Tensor, *, kept: int, **_: object
) -> torch.Tensor:
    """The best of all blocks: a selection on one level, whose time is quadratic."""
    return (q @ k.mT).topk(kept, sorted=False).indices.to(torch.int32)
