"""AdamW on the sizes of columns alone: APOLLO (Zhu et al. 2024, arXiv:2412.05270, algorithm 1)."""

import torch

from kernels.adamw.reference import reference as adamw


def reference(
    w: torch.Tensor, projection: torch.Tensor, g: torch.Tensor,
    m: torch.Tensor, v: torch.Tensor, size: torch.Tensor,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float,
    scale: float, growth: float, step: float, scaling: str,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """w, g [rows, cols], projection[rows, rank], m, v [rank, cols], size[1] -> w, m, v, size after the step.

    Adam would change the columns of r = projection^T g by n: the columns of g get as many times as long
    (`channel`), or all of them together (`tensor`). `size` is the root mean square of the result, which grows
    by the factor `growth` at most.
    """
    r = projection.t() @ g
    # In the type of the moments: what is rounded here, all elements have in common.
    count = torch.tensor(step, dtype=m.dtype, device=m.device)
    n, m, v = adamw(torch.zeros_like(r), r, m, v, -1.0, beta1, beta2, eps, 0.0, count)
    axes = 0 if scaling == "channel" else (0, 1)
    change = n.to(m.dtype).square().sum(axes).sqrt() / (r.to(m.dtype).square().sum(axes).sqrt() + eps)
    change = change * g.to(m.dtype)
    new = change.square().mean().sqrt()
    most = growth * size[0]
    limit = torch.where(new > most, most / new, torch.ones_like(new))
    wide = w.to(m.dtype)
    wide = wide - lr * weight_decay * wide - lr * scale * limit * change
    return wide.to(w.dtype), m, v, (limit * new)[None]
