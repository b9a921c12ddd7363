"""What linear attention within windows is compared with: PyTorch, window by window, and padded."""

import itertools

import torch


def in_turn(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor, eps: float
) -> torch.Tensor:
    """As the reference, one window after the other."""
    spans = itertools.pairwise([0, *ends.tolist()])
    return torch.cat(
        [
            _attend(*(each[None, begin:end] for each in (q, k, v)), eps)[0]
            for begin, end in spans
            if begin < end
        ]
    )


def padded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor, eps: float) -> torch.Tensor:
    """As the reference: all windows at once, padded at their ends with keys of 0."""
    begins = torch.cat((ends.new_zeros(1), ends[:-1]))
    lengths = ends - begins
    token = torch.arange(int(lengths.max()), device=q.device)
    inside = token < lengths[:, None]
    place = torch.where(inside, begins[:, None] + token, 0)
    return _attend(q[place], k[place] * inside[..., None, None], v[place], eps)[inside]


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, eps: float) -> torch.Tensor:
    """q, k, v [windows, tokens, heads, depth] -> o as q."""
    q, k, v = q.relu().transpose(1, 2), k.relu().transpose(1, 2), v.transpose(1, 2)
    return ((q @ (k.mT @ v)) / (q @ k.sum(2, keepdim=True).mT + eps)).transpose(1, 2)
