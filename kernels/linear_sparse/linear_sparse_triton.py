"""Linear layer in Triton with sparse weights: y = x W^T, W loaded as sparse and multiplied as dense.

Matrix units take dense tiles, and few rows of x are bound by the traffic of the weights: so these travel
compressed, and the zeros between them appear in registers (Xia et al. 2023, arXiv:2309.10285).

1. One program computes one BLOCK_N x BLOCK_M tile of the transpose of y, BLOCK_K columns of W at a time, so
   that the longer side of the tile is the one of which matrix units want 64 and more.
2. A weight is compared with all places of its group of columns, and is where its position says. No scatter is
   needed. Groups whose size is no power of two are multiplied with zeros up to the next one.
3. num_stages > 1 loads the tiles of later steps while this one is multiplied.
4. SPLIT: parts of K are given to programs of their own, as few rows have few tiles, and a second kernel adds
   their sums up.
"""

import math

import torch
import triton
import triton.language as tl

from kernels.split_k import add_parts


@triton.jit
def _spread(values, positions, SIZE: tl.constexpr):
    """values, positions[BLOCK_N, groups] -> [BLOCK_N, groups, SIZE], zero but for the values."""
    place = tl.arange(0, SIZE)[None, None, :]
    nothing = tl.zeros([1, 1, 1], values.dtype)
    return tl.where(positions[:, :, None].to(tl.int32) == place, values[:, :, None], nothing)


@triton.jit
def linear_sparse(
    x, values, positions, y, M, N, K, groups, part, x_stride,
    PAIRS: tl.constexpr, SEGMENT: tl.constexpr, SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """x[M, K], the weights -> y[parts, M, N]: each program along axis 1 sums over `part` groups of columns.

    A group has SEGMENT columns, SIZE in the dense tile. PAIRS: it has two weights, and shares a byte of
    positions with the next or the previous one.
    """
    tiles_n = tl.cdiv(N, BLOCK_N)
    m = (tl.program_id(0) // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = (tl.program_id(0) % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    first = tl.program_id(1) * part
    last = tl.minimum(first + part, groups)
    GROUPS: tl.constexpr = BLOCK_K // SIZE  # of a step
    column = tl.arange(0, BLOCK_K)
    place = column % SIZE
    sums = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    for start in tl.range(first, last, GROUPS, num_stages=STAGES):
        group = (start + tl.arange(0, GROUPS)).to(tl.int64)
        there = (n < N)[:, None] & (group < last)[None, :]
        if PAIRS:
            at = n[:, None] + 2 * group[None, :] * N
            byte = tl.load(positions + n[:, None] + (group // 2)[None, :] * N, mask=there, other=0)
            both = byte.to(tl.int32) >> (group % 2 * 4).to(tl.int32)[None, :]
            spread = _spread(tl.load(values + at, mask=there, other=0.0), both & 3, SIZE)
            spread += _spread(tl.load(values + at + N, mask=there, other=0.0), both >> 2 & 3, SIZE)
        else:
            at = n[:, None] + group[None, :] * N
            position = tl.load(positions + at, mask=there, other=0)
            spread = _spread(tl.load(values + at, mask=there, other=0.0), position, SIZE)
        weight = tl.reshape(spread, [BLOCK_N, BLOCK_K])
        k = (start + column // SIZE) * SEGMENT + place
        inside = (k < K) & (place < SEGMENT) & (start + column // SIZE < last)
        x_place = x + m[None, :] * x_stride + k[:, None]
        x_tile = tl.load(x_place, mask=inside[:, None] & (m < M)[None, :], other=0.0)
        sums = tl.dot(weight, x_tile, sums, input_precision="ieee")
    y_place = y + (tl.program_id(1).to(tl.int64) * M + m)[None, :] * N + n[:, None]
    tl.store(y_place, sums.to(y.dtype.element_ty), mask=(m < M)[None, :] & (n < N)[:, None])


def launch(
    *, x, values, positions, y, form, BLOCK_M, BLOCK_N, BLOCK_K, SPLIT, num_warps, num_stages
):  # fmt: skip
    """x and the weights as in `reference.dense_weights`, x[M, K] with any row stride -> y[M, N]."""
    M, N = y.shape
    K = math.prod(x.shape[1:])
    if M == 0 or N == 0:
        return
    pairs = form == "2to4"
    groups = values.shape[0] // 2 if pairs else values.shape[0]
    segment = 4 if pairs else x.shape[2]
    size = triton.next_power_of_2(segment)
    BLOCK_K = max(BLOCK_K, size)
    part = triton.cdiv(triton.cdiv(groups * size, BLOCK_K), SPLIT) * (BLOCK_K // size)
    sums = y if SPLIT == 1 else torch.empty((SPLIT, M, N), dtype=torch.float32, device=y.device)
    linear_sparse[(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N), SPLIT)](
        x, values, positions, sums, M, N, K, groups, part, x.stride(0),
        PAIRS=pairs, SEGMENT=segment, SIZE=size, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
        STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
    if SPLIT > 1:
        add_parts[(triton.cdiv(M * N, 1024),)](sums, y, M * N, PARTS=SPLIT, BLOCK=1024)
