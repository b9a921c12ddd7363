"""Residual addition and layer normalisation (Ba, Kiros and Hinton 2016, arXiv:1607.06450)."""

import torch


def reference(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, residual [rows, cols], weight, bias [cols] -> y[rows, cols], h[rows, cols] = x + residual."""
    return normalised(x + residual, weight, bias, eps)


def normalised(
    h: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of the sum h[rows, cols], which a training step keeps for the backward pass."""
    return torch.nn.functional.layer_norm(h, h.shape[-1:], weight, bias, eps), h
