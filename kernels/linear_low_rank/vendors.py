"""What a product through two factors is compared with: the one with the whole weights."""

import torch


def multiplied(x: torch.Tensor, down: torch.Tensor, up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Called as the reference -> the arguments of `dense`: x and the weights [K, N]. Not part of a call."""
    return x, down @ up


def dense(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x[M, K], weight[K, N] -> y[M, N] by the library that PyTorch chooses: oneDNN, MKL or cuBLAS."""
    return x @ weight
