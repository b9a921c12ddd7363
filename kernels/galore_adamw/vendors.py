"""What the step of low rank is compared with: PyTorch's fused AdamW of the whole matrix, all in float32."""

import torch

from kernels.adamw.vendors import Prepared, fused, state_of


def full_rank(
    w: torch.Tensor, _projection: torch.Tensor, g: torch.Tensor, _m: torch.Tensor, _v: torch.Tensor,
    step: float, scale: float, **settings: float,
) -> Prepared:  # fmt: skip
    """Called as the reference -> the arguments of `adamw`, moments of the whole matrix. Not timed."""
    del scale
    return state_of(w, g, torch.zeros_like(g), g.square(), step, settings)


adamw = fused


def full_rank_of_apollo(
    w: torch.Tensor, projection: torch.Tensor, g: torch.Tensor,
    m: torch.Tensor, v: torch.Tensor, _size: torch.Tensor,
    growth: float, scaling: str, **settings: float,
) -> Prepared:  # fmt: skip
    """The same, called as the reference of APOLLO."""
    del growth, scaling
    return full_rank(w, projection, g, m, v, **settings)
