"""State space with a scalar decay per head in its dual form (Mamba-2: Dao and Gu 2024, arXiv:2405.21060)."""

import torch


def reference(
    x: torch.Tensor, width: torch.Tensor, b: torch.Tensor, c: torch.Tensor, rate: torch.Tensor
) -> torch.Tensor:
    """x[batch, steps, heads, depth], width[batch, steps, heads], b, c [batch, steps, states] -> y as x.

    The same as the loop S_t = exp(-w_t rate) S_{t-1} + w_t x_t b_t^T, y_t = S_t c_t over time. width is the
    paper's step, after softplus, and rate[heads] is its -A; neither is negative. Heads share b and c.
    """
    kind = torch.promote_types(x.dtype, torch.float32)
    exponent = -(width.to(kind) * rate.to(kind)).mT[..., None]
    visible = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
    # Of step i and an earlier step j: the sum over the steps after j up to i.
    decay = torch.exp(torch.where(visible.tril(-1), exponent, 0.0).cumsum(-2))
    weights = torch.where(visible, (c @ b.mT)[:, None] * decay, 0.0)
    return (weights.to(x.dtype) @ (x * width[..., None]).transpose(1, 2)).transpose(1, 2)
