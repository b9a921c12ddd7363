"""AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2)."""

import torch


def reference(
    p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor,
    lr: float, beta1: float, beta2: float, eps: float, weight_decay: float, step: float | torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """p, g, m, v [rows, cols] -> p, m, v after the step, which is counted from 1."""
    g = g.to(m.dtype)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * (g * g)  # of rounded factors, the square could become negative
    update = m / (1 - beta1**step) / ((v / (1 - beta2**step)).sqrt() + eps)
    return (p - lr * weight_decay * p.to(m.dtype) - lr * update).to(p.dtype), m, v
