"""A linear layer whose weights are two factors of low rank (Metere 2025, arXiv:2511.18674)."""

import torch


def reference(x: torch.Tensor, down: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """x[M, K], down[K, R], up[R, N] -> y[M, N]."""
    return x @ down @ up
