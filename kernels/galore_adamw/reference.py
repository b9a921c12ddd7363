"""AdamW on a gradient of low rank: GaLore (Zhao et al. 2024, arXiv:2403.03507, algorithm 2)."""

import torch

from kernels.adamw.reference import reference as adamw


def reference(
    w: torch.Tensor, projection: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, scale: float, step: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """w, g [rows, cols], projection [rows, rank], m, v [rank, cols] -> w, m, v after the step.

    Adam's step from 0 at the rate -1 is the change that the moments of projection^T g ask for.
    """
    low_rank = projection.t() @ g
    change, m, v = adamw(torch.zeros_like(low_rank), low_rank, m, v, -1.0, beta1, beta2, eps, 0.0, step)
    wide = w.to(m.dtype)
    return (wide - lr * weight_decay * wide - lr * scale * (projection @ change)).to(w.dtype), m, v
