"""Linear layer in Triton with weights in 8 bits, 4 (`int4`, `nf4`, `mxfp4`, `shift`) or 2 (`ternary`).

A program computes a BLOCK_M x BLOCK_N tile of y = x w, BLOCK_K rows of the weights at a time. They travel as
they are stored and become 16-bit numbers in registers, just before `tl.dot` (Frantar et al. 2024,
arXiv:2408.11743): with few rows of x the traffic of the weights is the limit.

1. A byte holds rows 2i and 2i + 1 of the weights, so x is split into its even and odd columns, and two
   products are accumulated; four where it holds four rows. No weight changes its place.
2. LATE_SCALE: codes less zero points are exact in 16 bits; the sums of each step, whose rows share a group,
   are scaled instead of each weight.
3. The values of NF4 (Dettmers et al. 2023, arXiv:2305.14314) and of MXFP4 (Rouhani et al. 2023,
   arXiv:2310.10537) are selected by the bits of their code: 15 or 7 selections and no load.
   Powers of two (`shift`: Li et al. 2022, arXiv:2208.09708) are their own exponent bits.
4. `trit_planes` are two planes of `ternary` (Xiao et al. 2025, arXiv:2509.16989): two products with one tile
   of x.
5. num_stages > 1 loads the tiles of later steps while this one is multiplied.
6. SPLIT: few rows have few tiles, which do not fill a device. Parts of K are given to programs of their own,
   whose sums a second kernel adds up in order, so that equal inputs give equal bits.
"""

import torch
import triton
import triton.language as tl

from kernels.linear_quantized.reference import FP4, NF4
from kernels.split_k import add_parts

VALUES = tl.constexpr(NF4 + FP4)


@triton.jit
def _select(code, BIT: tl.constexpr, FIRST: tl.constexpr):
    """The value of a code: VALUES[FIRST + its BIT + 1 low bits]."""
    if BIT == 0:
        low, high = VALUES[FIRST], VALUES[FIRST + 1]
    else:
        low = _select(code, BIT - 1, FIRST)
        high = _select(code, BIT - 1, FIRST + (1 << BIT))
    return tl.where((code & (1 << BIT)) != 0, high, low)


@triton.jit
def _add_product(product, x, code, zero, scale, CODE: tl.constexpr, LATE_SCALE: tl.constexpr):
    """product[BLOCK_M, BLOCK_N], x[BLOCK_M, rows], code[rows, BLOCK_N], zero and scale[BLOCK_N] -> their sum.

    Weights are multiplied in the type of x.
    """
    if CODE == "nf4":
        value = _select(code.to(tl.int32), 3, 0)
    elif CODE == "mxfp4":
        size = _select(code.to(tl.int32), 2, 16)
        value = tl.where((code & 8) != 0, -size, size)
    elif CODE == "int4":
        value = (code.to(tl.int32) - zero[None, :].to(tl.int32)).to(tl.float32)
    elif CODE == "shift":
        bits = code.to(tl.int32)
        value = ((bits & 8) << 28 | ((bits & 7) + 120) << 23).to(tl.float32, bitcast=True)
    elif CODE == "ternary":
        value = (code.to(tl.int32) - 1).to(tl.float32)
    else:
        value = code.to(tl.float32)
    if not LATE_SCALE:
        value = value * scale[None, :]
    return tl.dot(x, value.to(x.dtype), product, input_precision="ieee")


@triton.jit
def linear_quantized(
    x, weight, scales, zeros, y, M, N, K, part, x_stride,
    CODE: tl.constexpr, GROUP: tl.constexpr, LATE_SCALE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """x[M, K], the weights -> y[parts, M, N]: each program along axis 1 sums over `part` rows of weights."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    m = (tl.program_id(0) // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (tl.program_id(0) % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(1) * part
    last = tl.minimum(first + part, K)
    column = tl.arange(0, BLOCK_K)
    PLANES: tl.constexpr = 2 if CODE == "trit_planes" else 1
    KIND: tl.constexpr = "ternary" if CODE == "trit_planes" else CODE
    ROWS: tl.constexpr = 1 if KIND == "int8" else 4 if KIND == "ternary" else 2  # in a byte
    x_place = x + m[:, None] * x_stride + column[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in tl.range(first, last, BLOCK_K, num_stages=STAGES):
        inside = (m < M)[:, None] & (start + column < K)[None, :]
        x_tile = tl.load(x_place + start, mask=inside, other=0.0)
        for plane in tl.static_range(PLANES):
            product = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
            at = n
            if GROUP > 0:
                at += (plane * tl.cdiv(K, GROUP) + start // GROUP).to(tl.int64) * N
            if CODE == "mxfp4":
                exponent = tl.load(scales + at, mask=n < N, other=0).to(tl.int32)
                scale = (exponent << 23).to(tl.float32, bitcast=True)
            else:
                scale = tl.load(scales + at, mask=n < N, other=0.0).to(tl.float32)
            zero = scale
            if CODE == "int4":
                zero = tl.load(zeros + at, mask=n < N, other=0)
            row = start // ROWS + tl.arange(0, BLOCK_K // ROWS)
            there = (ROWS * row < K)[:, None] & (n < N)[None, :]
            place = (plane * tl.cdiv(K, ROWS) + row).to(tl.int64)[:, None] * N + n[None, :]
            byte = tl.load(weight + place, mask=there, other=0)
            if ROWS == 1:
                product = _add_product(product, x_tile, byte, zero, scale, KIND, LATE_SCALE)
            elif ROWS == 2:
                even, odd = tl.split(tl.reshape(x_tile, [BLOCK_M, BLOCK_K // 2, 2]))
                product = _add_product(product, even, byte & 15, zero, scale, KIND, LATE_SCALE)
                product = _add_product(product, odd, byte >> 4, zero, scale, KIND, LATE_SCALE)
            else:
                even, odd = tl.split(tl.reshape(x_tile, [BLOCK_M, BLOCK_K // 4, 2, 2]))
                first_of_4, third_of_4 = tl.split(even)
                second_of_4, fourth_of_4 = tl.split(odd)
                product = _add_product(product, first_of_4, byte & 3, zero, scale, KIND, LATE_SCALE)
                product = _add_product(product, second_of_4, byte >> 2 & 3, zero, scale, KIND, LATE_SCALE)
                product = _add_product(product, third_of_4, byte >> 4 & 3, zero, scale, KIND, LATE_SCALE)
                product = _add_product(product, fourth_of_4, byte >> 6, zero, scale, KIND, LATE_SCALE)
            sums += product * scale[None, :] if LATE_SCALE else product
    y_place = y + (tl.program_id(1).to(tl.int64) * M + m)[:, None] * N + n[None, :]
    tl.store(y_place, sums.to(y.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


def launch(
    *, x, weight, scales, y, code, BLOCK_M, BLOCK_N, BLOCK_K, SPLIT, LATE_SCALE, num_warps, num_stages,
    zeros=None, group=0,
):  # fmt: skip
    """x[M, K] with any row stride, the weights as in `reference.dequantise` -> y[M, N]."""
    M, K = x.shape
    N = y.shape[1]
    if M == 0 or N == 0:
        return
    part = triton.cdiv(triton.cdiv(K, BLOCK_K), SPLIT) * BLOCK_K
    sums = y if SPLIT == 1 else torch.empty((SPLIT, M, N), dtype=torch.float32, device=y.device)
    linear_quantized[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N), SPLIT)](
        x, weight, scales, zeros, sums, M, N, K, part, x.stride(0),
        CODE=code, GROUP=group, LATE_SCALE=LATE_SCALE, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
        STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
    if SPLIT > 1:
        add_parts[(triton.cdiv(M * N, 1024),)](sums, y, M * N, PARTS=SPLIT, BLOCK=1024)
