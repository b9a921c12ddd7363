"""What a product with quantised weights is compared with: the one with weights dequantised beforehand."""

from typing import Any

import torch

from kernels.linear_quantized.reference import dequantise


def dequantised(
    x: torch.Tensor, *stored: torch.Tensor, **attributes: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Called as the reference -> the arguments of `dense`: x and the weights [K, N]. Not part of a call."""
    return x, dequantise(x, *stored, **attributes)


def dense(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x[M, K], weight[K, N] -> y[M, N] by the library that PyTorch chooses: oneDNN, MKL or cuBLAS."""
    return x @ weight
