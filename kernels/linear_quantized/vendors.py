"""What a product with quantised weights is compared with: the one with weights dequantised beforehand."""

import torch

from kernels.linear_quantized.reference import dequantise


def dequantised(
    x: torch.Tensor,
    weight: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor | None = None,
    *,
    code: str,
    group: int = 0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The arguments of `dense`: x and the weights [K, N] in its type. Not part of a call."""
    return x, dequantise(x.shape[1], weight, scales, zeros, code=code, group=group)


def dense(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x[M, K], weight[K, N] -> y[M, N] by the library that PyTorch chooses: oneDNN, MKL or cuBLAS."""
    return x @ weight
