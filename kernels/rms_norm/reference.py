"""Root-mean-square normalisation (Zhang and Sennrich 2019, arXiv:1910.07467)."""

import torch


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x[rows, cols], weight[cols] -> y[rows, cols]."""
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)


def magnitude(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """|y|: positive terms under the root and products after it, so errors are relative to the output."""
    return reference(x, weight, eps).abs()
