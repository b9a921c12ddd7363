"""Linear layer whose weights are stored in 8, 4 or 2 bits: they are dequantised, then multiplied."""

import torch

NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
"""The 16 values of NormalFloat4: quantiles of the normal distribution (Dettmers et al. 2023,
arXiv:2305.14314, appendix E)."""

FP4 = (*(0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0), *(-0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0))
"""The 16 values of E2M1 (Open Compute Project, Microscaling Formats v1.0, section 5.3.3)."""
SHIFTS = tuple(sign * 2.0**exponent for sign in (1, -1) for exponent in range(-7, 1))
"""Signed powers of two without a zero, as in DenseShift (Li et al. 2022, arXiv:2208.09708)."""
TABLES = {"nf4": NF4, "mxfp4": FP4, "shift": SHIFTS}


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor | None = None,
    *,
    code: str,
    group: int = 0,
) -> torch.Tensor:
    """x[M, K], the weights as in `dequantise` -> y[M, N]."""
    return x @ dequantise(x, weight, scales, zeros, code=code, group=group)


def dequantise(
    x: torch.Tensor,
    weight: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor | None = None,
    *,
    code: str,
    group: int = 0,
) -> torch.Tensor:
    """The dense weights [depth, N] for x[M, depth], in its type.

    `int8`: weight[depth, N] * scales[N]. `int4` and `nf4`: weight[depth / 2, N] has row 2i of the weights in
    the low half of byte i and row 2i + 1 in the high half; `group` rows share scales[depth / group, N] and,
    for `int4`, zeros[depth / group, N]: (code - zero) * scale. `nf4`: NF4[code] * scale. `mxfp4`:
    FP4[code] * 2^(scale - 127). `ternary`: weight[depth / 4, N] has rows 4i to 4i + 3 in byte i, the first in
    its low bits: (code - 1) * scales[N]. `trit_planes`: the sum of two of these, weight[2, depth / 4, N],
    with scales[2, depth / group, N]. `shift`: as `nf4`, SHIFTS[code] * scales[N].
    """
    depth = x.shape[1]
    if code == "int8":
        return weight.to(x.dtype) * scales
    if code == "ternary":
        return (trits(weight, depth).to(x.dtype) - 1) * scales
    if code == "trit_planes":
        row = torch.arange(depth, device=weight.device) // group
        planes = [(trits(weight[i], depth).to(x.dtype) - 1) * scales[i, row] for i in range(2)]
        return planes[0] + planes[1]
    codes = torch.stack((weight & 15, weight >> 4), 1).flatten(0, 1)[:depth].long()
    row = torch.arange(depth, device=weight.device) // max(group, 1)
    if code == "int4":
        return (codes - zeros[row]).to(x.dtype) * scales[row]
    values = torch.tensor(TABLES[code], dtype=x.dtype, device=x.device)[codes]
    if code == "mxfp4":
        return torch.ldexp(values, scales[row].int() - 127)
    return values * (scales if code == "shift" else scales[row])


def trits(weight: torch.Tensor, depth: int) -> torch.Tensor:
    """Codes of two bits, [depth, N], of a plane that has four in a byte."""
    return torch.stack([weight >> bit & 3 for bit in (0, 2, 4, 6)], 1).flatten(0, 1)[:depth]
