"""What a product with sparse weights is compared with: PyTorch's products, with weights in its own forms."""

from typing import Any

import torch

from kernels.linear_sparse.reference import dense_weights

Pair = tuple[torch.Tensor, torch.Tensor]


def restored(x: torch.Tensor, values: torch.Tensor, positions: torch.Tensor, **attributes: Any) -> Pair:
    """Called as the reference -> x and W [N, K] with its zeros. Not part of a call."""
    return x.flatten(1), dense_weights(x, values, positions, **attributes).mT.contiguous()


def dense(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x[M, K], W[N, K] -> y[M, N] by the library that PyTorch chooses: oneDNN, MKL or cuBLAS."""
    return torch.nn.functional.linear(x, weight)


def compressed_rows(*inputs: torch.Tensor, **attributes: Any) -> Pair:
    """Called as the reference -> x and W [N, K] in CSR. Not part of a call."""
    x, weight = restored(*inputs, **attributes)
    return x, weight.to_sparse_csr()


def csr(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x[M, K], W[N, K] in CSR -> y[M, N] by torch.sparse: MKL or cuSPARSE."""
    return (weight @ x.mT).mT
