"""Scores of blocks of keys for blocks of queries from 4-bit codes in Triton: the largest q k / sqrt(depth).

A program has a block of queries and one of keys, whose bytes it reads once and splits into the codes of even
and of odd numbers: two products of 8-bit integers by matrix units with exact sums (SALE: Ji et al. 2025,
arXiv:2505.24179). Only one number of each pair of blocks is written. INTEGER: without it codes become 16-bit
numbers before the product, which are exact as well.
"""

import triton
import triton.language as tl


@triton.jit
def _codes(byte, INTEGER: tl.constexpr):
    """Bytes -> their low and high codes less the zero point, in the type of the product."""
    low, high = (byte & 15).to(tl.int8) - 8, (byte >> 4).to(tl.int8) - 8
    TYPE: tl.constexpr = tl.int8 if INTEGER else tl.float16
    return low.to(TYPE), high.to(TYPE)


@triton.jit
def score_blocks(
    q, k, q_scale, k_scale, score, groups, block, size, past, factor,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, INTEGER: tl.constexpr, BYTES: tl.constexpr,
):  # fmt: skip
    """q[batch, groups, query blocks, block, size], k[batch, key blocks, block, size] -> score."""
    keys, queries, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    column = tl.arange(0, BYTES)
    key = tl.arange(0, BLOCK_K)
    best = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    if keys <= queries + past:
        k_row = (batch * tl.num_programs(0) + keys) * block + key
        there = (key < block)[:, None] & (column < size)[None, :]
        byte = tl.load(k + k_row[:, None] * size + column[None, :], mask=there, other=0x88)
        even_key, odd_key = _codes(byte, INTEGER)
        of_key = tl.load(k_scale + k_row, mask=key < block, other=0.0).to(tl.float32)
        for start in range(0, groups * block, BLOCK_Q):
            row = start + tl.arange(0, BLOCK_Q)
            query, inside = row // groups, row < groups * block
            q_row = ((batch * groups + row % groups) * tl.num_programs(1) + queries) * block + query
            there = inside[:, None] & (column < size)[None, :]
            byte = tl.load(q + q_row[:, None] * size + column[None, :], mask=there, other=0x88)
            even, odd = _codes(byte, INTEGER)
            product = tl.dot(even, tl.trans(even_key)) + tl.dot(odd, tl.trans(odd_key))
            of_query = tl.load(q_scale + q_row, mask=inside, other=0.0).to(tl.float32) * factor
            seen = inside[:, None] & (key < block)[None, :]
            seen = seen & ((keys < queries + past) | (key[None, :] <= query[:, None]))
            scores = tl.where(
                seen, product.to(tl.float32) * of_key[None, :] * of_query[:, None], float("-inf")
            )
            best = tl.maximum(best, tl.max(scores, axis=1))
    place = (batch * tl.num_programs(1) + queries) * tl.num_programs(0) + keys
    tl.store(score + place, tl.max(best, axis=0).to(score.dtype.element_ty))


def launch(*, q, k, q_scale, k_scale, score, BLOCK_Q, INTEGER, num_warps):
    """q[batch, groups, query blocks, block, bytes], k[batch, key blocks, block, bytes], scales -> score."""
    groups, query_blocks, block, size = q.shape[1:]
    batch, key_blocks = k.shape[:2]
    if not score.numel():
        return
    past = max(key_blocks - query_blocks, 0)
    score_blocks[(key_blocks, query_blocks, batch)](
        q, k, q_scale, k_scale, score, groups, block, size, past, (2 * size) ** -0.5,
        BLOCK_Q=BLOCK_Q, BLOCK_K=max(16, triton.next_power_of_2(block)), INTEGER=INTEGER,
        BYTES=max(32, triton.next_power_of_2(size)), num_warps=num_warps,
    )  # fmt: skip
