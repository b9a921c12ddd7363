"""2:4 pruning of weights by a soft threshold in Triton (Hu et al. 2024, arXiv:2409.09099).

A program has a tile of W and splits it into the four weights of each group. Ranks follow from six comparisons
of a group: no sort. Results are joined, transposed and stored in the form that linear_2to4 reads. Magnitudes
are compared as integers, in whose order NaN is above infinity. Bound by memory bandwidth.
"""

import triton
import triton.language as tl


@triton.jit
def _before(size, other):
    """1 where the weight on the left comes first, of equal ones too."""
    return (size >= other).to(tl.int32)


@triton.jit
def _shrunk(weight, threshold, scale):
    rest = (tl.abs(weight) - threshold) * scale
    return tl.where(weight < 0, -rest, rest)


@triton.jit
def prune(weight, values, positions, N, K, scale, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """weight[N, K] -> values[2 ceil(K / 4), N], positions[ceil(K / 8), N]."""
    n = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    inside = (n < N)[:, None] & (k < K)[None, :]
    tile = tl.load(weight + n[:, None] * K + k[None, :], mask=inside, other=0.0).to(tl.float32)
    even, odd = tl.split(tl.reshape(tile, [BLOCK_N, BLOCK_K // 4, 2, 2]))
    w0, w2 = tl.split(even)
    w1, w3 = tl.split(odd)
    s0 = w0.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    s1 = w1.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    s2 = w2.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    s3 = w3.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    b01, b02, b03 = _before(s0, s1), _before(s0, s2), _before(s0, s3)
    b12, b13, b23 = _before(s1, s2), _before(s1, s3), _before(s2, s3)
    rank0, rank1 = 3 - b01 - b02 - b03, b01 + 2 - b12 - b13
    rank2, rank3 = b02 + b12 + 1 - b23, b03 + b13 + b23
    third = tl.where(rank0 == 2, s0, tl.where(rank1 == 2, s1, tl.where(rank2 == 2, s2, s3)))
    threshold = third.to(tl.float32, bitcast=True)
    first = tl.where(rank0 < 2, w0, tl.where(rank1 < 2, w1, w2))
    place = tl.where(rank0 < 2, 0, tl.where(rank1 < 2, 1, 2))
    second = tl.where(rank3 < 2, w3, tl.where(rank2 < 2, w2, w1))
    other = tl.where(rank3 < 2, 3, tl.where(rank2 < 2, 2, 1))
    kept = tl.join(_shrunk(first, threshold, scale), _shrunk(second, threshold, scale))
    kept = tl.trans(tl.reshape(kept, [BLOCK_N, BLOCK_K // 2]))
    row = tl.program_id(1) * (BLOCK_K // 2) + tl.arange(0, BLOCK_K // 2)
    there = (row < tl.cdiv(K, 4) * 2)[:, None] & (n < N)[None, :]
    place_of = row.to(tl.int64)[:, None] * N + n[None, :]
    tl.store(values + place_of, kept.to(values.dtype.element_ty), mask=there)
    low, high = tl.split(tl.reshape(place | other << 2, [BLOCK_N, BLOCK_K // 8, 2]))
    byte = tl.trans((low | high << 4).to(tl.uint8))
    row = tl.program_id(1) * (BLOCK_K // 8) + tl.arange(0, BLOCK_K // 8)
    there = (row < tl.cdiv(K, 8))[:, None] & (n < N)[None, :]
    tl.store(positions + row.to(tl.int64)[:, None] * N + n[None, :], byte, mask=there)


def launch(*, weight, values, positions, scale, BLOCK_N, BLOCK_K, num_warps):
    """weight[N, K], contiguous -> values and positions, as in `reference_pruning.reference`."""
    N, K = weight.shape
    if N and K:
        grid = (triton.cdiv(N, BLOCK_N), triton.cdiv(K, BLOCK_K))
        prune[grid](
            weight, values, positions, N, K, scale, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=num_warps
        )
