"""Layer normalisation (Ba, Kiros and Hinton 2016, arXiv:1607.06450)."""

import torch


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """x[rows, cols], weight[cols], bias[cols] -> y[rows, cols]."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)
