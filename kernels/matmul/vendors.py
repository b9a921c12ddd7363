"""The matrix product of vendors' libraries, reached through PyTorch's own bindings to them.

On the CPU eager PyTorch takes MKL for float32 and oneDNN for bfloat16 and float16, on NVIDIA's GPUs cuBLAS or
cuBLASLt by a rule of its own; here each library stands alone. None of them is called in another way than
PyTorch calls it, so the dispatcher's cost is the same for all.
"""

import torch

from kernels.matmul.reference import reference


def onednn(
    a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None, *, epilogue: str = "none"
) -> torch.Tensor:
    """a[M, K], b[K, N], bias[N] -> c[M, N] by oneDNN, bias and GELU in its epilogue; b goes in transposed."""
    linear = torch.ops.mkldnn._linear_pointwise
    if epilogue == "bias_gelu":
        return linear(a, b.t(), bias, "gelu", [], "none")
    return linear(a, b.t(), None, "none", [], "")


def without_onednn() -> None:
    """From now on eager PyTorch leaves oneDNN out: MKL, or PyTorch's own code where MKL lacks the dtype."""
    torch.backends.mkldnn.set_flags(False)


def with_cublas() -> None:
    """From now on products go to cuBLAS."""
    torch.backends.cuda.preferred_blas_library("cublas")


def with_cublaslt() -> None:
    """From now on products go to cuBLASLt, which chooses its kernel by its own heuristic."""
    torch.backends.cuda.preferred_blas_library("cublaslt")


blas = reference
