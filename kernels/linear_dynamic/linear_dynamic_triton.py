"""Linear layers for quantised training in Triton: both operands are quantised, then multiplied.

1. Scales of rows and tensors need their largest magnitudes first: a kernel finds those of rows, another one
   the largest of these. Scales of blocks follow from the tile that is quantised.
2. Quantised operands are stored, in 8 bits, for all tiles of the product that read them. They are padded with
   zeros along the sum, so that the product needs no mask there. For the gradient of the input the weights are
   transposed on the way (Wortsman et al. 2023, arXiv:2304.13013): products of 8 bits read both along the sum.
3. The product is one of int8, exact, or of FP8 on the matrix units, with scales in its epilogue. Where scales
   belong to blocks, each step of the loop is scaled and added up in float32. Sums of FP8 go to float32 after
   each instruction on Hopper, whose matrix units add in about 14 bits (DeepSeek-AI 2024, arXiv:2412.19437).
4. Blocks of FP4 are mixed by a product with the Hadamard matrix, whose signs follow from the bits of row and
   column. Numbers of FP4 times their powers of two are exact in bfloat16, as which they are stored and
   multiplied: the units for FP4 of Blackwell are not used.
5. num_stages > 1 loads the tiles of later steps while this one is multiplied.

Codes are rounded by an addition: of 1.5 * 2^23 times the distance of the numbers around a value. The
conversion to 8 bits is then exact, whatever the target's own does with ties and subnormals. Largest
magnitudes are compared as integers, in whose order NaN is above infinity. Bound by the products.
"""

import torch
import triton
import triton.language as tl

from kernels.linear_dynamic.reference import LARGEST, codes_of

FORMATS = {"int8": (7, 7), "e4m3": (3, -6), "e5m2": (2, -14), "e2m1": (1, 0)}
"""Digits behind the point, exponent of the smallest normal number; integers are one apart, as from 2^7 on."""
TYPES = {
    "int8": torch.int8,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "e2m1": torch.bfloat16,
}
PADDING = 128  # of rows of codes


@triton.jit
def row_maxima(values, maxima, rows, cols, stride, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """values[rows, cols] with this stride -> bits of the largest magnitude of each row, maxima[rows]."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    largest = tl.zeros([ROWS, BLOCK], tl.int32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        inside = (row < rows)[:, None] & (col < cols)[None, :]
        tile = tl.load(values + row[:, None] * stride + col[None, :], mask=inside, other=0.0)
        largest = tl.maximum(largest, _size_bits(tile.to(tl.float32)))
    tl.store(maxima + row, tl.max(largest, 1), mask=row < rows)


@triton.jit
def total_maximum(maxima, largest, count, BLOCK: tl.constexpr):
    """maxima[count] -> the largest one, in one program."""
    found = tl.zeros([BLOCK], tl.int32)
    for start in range(0, count, BLOCK):
        place = start + tl.arange(0, BLOCK)
        found = tl.maximum(found, tl.load(maxima + place, mask=place < count, other=0))
    tl.store(largest, tl.max(found, 0))


@triton.jit
def _size_bits(values):
    return values.to(tl.int32, bitcast=True) & 0x7FFFFFFF


@triton.jit
def _scale(bits, LARGEST_CODE: tl.constexpr):
    """Bits of largest magnitudes -> scales, NaN for what is not finite."""
    scale = tl.maximum(bits.to(tl.float32, bitcast=True) / LARGEST_CODE, 1.1754943508222875e-38)
    return tl.where(bits < 0x7F800000, scale, float("nan"))


@triton.jit
def _rounded(values, DIGITS: tl.constexpr, LEAST: tl.constexpr):
    """The nearest numbers of a code, to even."""
    LOWEST: tl.constexpr = (LEAST + 127) << 23
    MOVE: tl.constexpr = (23 - DIGITS) << 23
    exponent = tl.maximum(values.to(tl.int32, bitcast=True) & 0x7F800000, LOWEST)
    added = ((exponent + MOVE) | 0x400000).to(tl.float32, bitcast=True)
    return (values + added) - added


@triton.jit
def quantise(
    values, codes, scales, maxima, rows, cols, stride, code_stride,
    SCALING: tl.constexpr, TRANSPOSED: tl.constexpr, DIGITS: tl.constexpr,
    LEAST: tl.constexpr, LARGEST_CODE: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """values[rows, cols] -> codes in rows of this stride, or in columns (TRANSPOSED), zeros behind their end.

    Scales are those of maxima[rows], of maxima[0], or made from the tile: of each row, or all of it.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    tile = tl.load(values + row[:, None] * stride + col[None, :], mask=inside, other=0.0).to(tl.float32)
    if SCALING == "row":
        scale = _scale(tl.load(maxima + row, mask=row < rows, other=0), LARGEST_CODE)[:, None]
    elif SCALING == "tensor":
        scale = _scale(tl.load(maxima), LARGEST_CODE)
    elif SCALING == "tile_row":
        found = _scale(tl.max(_size_bits(tile), 1), LARGEST_CODE)
        tl.store(scales + row * tl.num_programs(1) + tl.program_id(1), found, mask=row < rows)
        scale = found[:, None]
    else:
        scale = _scale(tl.max(tl.max(_size_bits(tile), 1), 0), LARGEST_CODE)
        tl.store(scales + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), scale)
    code = _rounded(tile * (1.0 / scale), DIGITS, LEAST).to(codes.dtype.element_ty)
    if TRANSPOSED:
        place = codes + col.to(tl.int64)[:, None] * code_stride + row[None, :]
        tl.store(place, tl.trans(code), mask=(col < cols)[:, None] & (row < code_stride)[None, :])
    else:
        place = codes + row[:, None] * code_stride + col[None, :]
        tl.store(place, code, mask=(row < rows)[:, None] & (col < code_stride)[None, :])


@triton.jit
def quantise_mixed(
    values,
    codes,
    rows,
    cols,
    stride,
    code_stride,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """values[rows, cols], mixed in groups -> numbers of FP4 times their powers of two, in bfloat16."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    tile = tl.load(values + row[:, None] * stride + col[None, :], mask=inside, other=0.0).to(tl.float32)
    place = tl.arange(0, GROUP)
    parity = place[:, None] & place[None, :]
    parity ^= parity >> 4
    parity ^= parity >> 2
    parity ^= parity >> 1
    signs = 1.0 - 2.0 * (parity & 1).to(tl.float32)
    groups = tl.reshape(tile, [ROWS * COLS // GROUP, GROUP])
    groups = tl.dot(groups, signs, input_precision="ieee") * 0.17677669529663687
    exponent = tl.max(_size_bits(groups), 1) >> 23
    power = tl.maximum(exponent - 2, 1)
    scale = tl.where(exponent < 255, (power << 23).to(tl.float32, bitcast=True), float("nan"))
    inverse = ((254 - power) << 23).to(tl.float32, bitcast=True)
    share = tl.minimum(tl.maximum(groups * inverse[:, None], -6.0), 6.0)
    code = tl.reshape(_rounded(share, 1, 0) * scale[:, None], [ROWS, COLS]).to(tl.bfloat16)
    to = codes + row[:, None] * code_stride + col[None, :]
    tl.store(to, code, mask=(row < rows)[:, None] & (col < code_stride)[None, :])


@triton.jit
def product(
    x, weight, y, x_scales, scales, M, N, depth, groups,
    SCALING: tl.constexpr, GROUP: tl.constexpr, INTEGERS: tl.constexpr, X_LARGEST: tl.constexpr,
    LARGEST_CODE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Codes x[M, depth], weight[N, depth] -> y[M, N]. Scales are bits of maxima, but for those of blocks."""
    tiles_n = tl.cdiv(N, BLOCK_N)
    m = (tl.program_id(0) // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (tl.program_id(0) % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    x_place = x + m[:, None] * depth + k[None, :]
    place = weight + n[None, :] * depth + k[:, None]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.int32 if INTEGERS else tl.float32)
    for start in tl.range(0, depth, BLOCK_K, num_stages=STAGES):
        x_tile = tl.load(x_place + start, mask=(m < M)[:, None], other=0.0)
        tile = tl.load(place + start, mask=(n < N)[None, :], other=0.0)
        if INTEGERS:
            sums = tl.dot(x_tile, tile, sums, out_dtype=tl.int32)
        elif SCALING == "block":
            group = start // GROUP
            left = tl.load(x_scales + m * groups + group, mask=m < M, other=0.0)
            right = tl.load(scales + n // GROUP * groups + group, mask=n < N, other=0.0)
            part = tl.dot(x_tile, tile, max_num_imprecise_acc=32)
            sums += part * (left[:, None] * right[None, :])
        else:
            sums = tl.dot(x_tile, tile, sums, max_num_imprecise_acc=32)
    result = sums.to(tl.float32)
    if SCALING == "row":
        left = _scale(tl.load(x_scales + m, mask=m < M, other=0), X_LARGEST)
        result *= left[:, None] * _scale(tl.load(scales), LARGEST_CODE)
    elif SCALING == "tensor":
        result *= _scale(tl.load(x_scales), X_LARGEST) * _scale(tl.load(scales), LARGEST_CODE)
    y_place = y + m[:, None] * N + n[None, :]
    tl.store(y_place, result.to(y.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


def _quantised(values, code, scaling, group, transposed=False):
    """values[rows, cols] -> codes[rows or cols, whole blocks], bits of maxima or scales."""
    rows, cols = values.shape
    kept, depth = (cols, rows) if transposed else (rows, cols)
    padded = triton.cdiv(depth, PADDING) * PADDING
    codes = torch.empty((kept, padded), dtype=TYPES[code], device=values.device)
    if scaling == "micro":
        quantise_mixed[(triton.cdiv(rows, 32), padded // PADDING)](
            values,
            codes,
            rows,
            cols,
            values.stride(0),
            padded,
            GROUP=group,
            ROWS=32,
            COLS=PADDING,
            num_warps=4,
        )
        return codes, codes
    maxima = torch.empty(max(rows, 1), dtype=torch.int32, device=values.device)
    scales = maxima
    digits, least = FORMATS[code]
    height = PADDING if scaling == "tile" else 32
    height_of, width_of = (padded, cols) if transposed else (rows, padded)
    grid = (triton.cdiv(height_of, height), triton.cdiv(width_of, PADDING))
    if scaling.startswith("tile"):
        groups = (triton.cdiv(rows, PADDING) if scaling == "tile" else rows, padded // PADDING)
        scales = torch.empty(groups, dtype=torch.float32, device=values.device)
    else:
        row_maxima[(triton.cdiv(rows, 4),)](
            values, maxima, rows, cols, values.stride(0), ROWS=4, BLOCK=512, num_warps=4
        )
        if scaling == "tensor":
            scales = torch.empty(1, dtype=torch.int32, device=values.device)
            total_maximum[(1,)](maxima, scales, rows, BLOCK=1024, num_warps=4)
    quantise[grid](
        values, codes, scales, scales, rows, cols, values.stride(0), padded,
        SCALING=scaling, TRANSPOSED=transposed, DIGITS=digits, LEAST=least, LARGEST_CODE=LARGEST[code],
        ROWS=height, COLS=PADDING, num_warps=8 if scaling == "tile" else 4,
    )  # fmt: skip
    return codes, scales


def launch(
    *, x, weight, y, codes, scaling, direction, BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages, group=0
):
    """x[M, K] with any row stride and weight[N, K], or [K, N] backward -> y[M, N]."""
    M, N = y.shape
    if M == 0 or N == 0:
        return
    left, right = codes_of(codes)
    kinds = {"row": ("row", "tensor"), "block": ("tile_row", "tile")}.get(scaling, (scaling, scaling))
    x_codes, x_scales = _quantised(x, left, kinds[0], group)
    weight_codes, scales = _quantised(weight, right, kinds[1], group, transposed=direction == "backward")
    product[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)](
        x_codes, weight_codes, y, x_scales, scales, M, N, x_codes.shape[1], x_codes.shape[1] // PADDING,
        SCALING=scaling, GROUP=group, INTEGERS=codes == "int8",
        X_LARGEST=LARGEST[left], LARGEST_CODE=LARGEST[right],
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
