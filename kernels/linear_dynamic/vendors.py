"""What linear layers for quantised training are compared with: products as they are, and of 8 bits."""

import torch

from kernels.linear_dynamic.reference import FLOAT8, codes_of, rounded, scale_of


def dense(x: torch.Tensor, weight: torch.Tensor, *, direction: str, **_: str | int) -> torch.Tensor:
    """As the reference, by the library that PyTorch chooses: oneDNN, MKL or cuBLAS."""
    return x @ (weight.mT if direction == "forward" else weight)


def eight_bits(
    x: torch.Tensor, weight: torch.Tensor, *, codes: str, scaling: str, direction: str, **_: int
) -> torch.Tensor:
    """As the reference, but in 8 bits and without scales of blocks: elementwise operators, a library."""
    left, right = codes_of("e4m3" if codes == "e2m1" else codes)
    kept, x, weight = x.dtype, x.float(), weight.float()
    x_scale = scale_of(x.abs().amax(1 if scaling == "row" else (0, 1), keepdim=True), left)
    scale = scale_of(weight.abs().amax(), right)
    x_codes, weight_codes = rounded(x / x_scale, left), rounded(weight / scale, right)
    if codes == "int8":
        x_codes, weight_codes = x_codes.to(torch.int8), weight_codes.to(torch.int8)
        sums = torch._int_mm(x_codes, weight_codes.mT if direction == "forward" else weight_codes)
        return (sums * (x_scale * scale)).to(kept)
    # The library wants the right matrix stored along the sum.
    x_codes, weight_codes = x_codes.to(FLOAT8[left]), weight_codes.to(FLOAT8[right])
    columns = weight_codes.mT if direction == "forward" else weight_codes.mT.contiguous().mT
    return torch._scaled_mm(x_codes, columns, x_scale.view(1), scale.view(1), out_dtype=kept)
