"""Attention of blocks of queries to the blocks of keys that a list names for each, in Triton.

Log-linear sparse attention (LLSA: Zhou et al. 2025, arXiv:2512.16615): a program has one block of queries,
walks along its list, STEP blocks of keys at a time, and reads nothing else. What it does with their scores is
that of attention (tile.py). How many tokens a key stands for is added to its score, as a binary
logarithm. num_stages loads the next blocks, whose numbers are loaded one step before them, while these are
multiplied.
"""

import triton
import triton.language as tl

from kernels.attention.tile import (
    LOG2_E,
    add_values,
    blocks_of,
    columns_of,
    listed_keys,
    score_keys,
    store_found,
)


@triton.jit
def attend_selected(
    q, k, v, blocks, count, o, queries, keys, depth, listed, scale,
    BLOCK: tl.constexpr, STEP: tl.constexpr, DEPTH: tl.constexpr, REST: tl.constexpr, VALUES: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """q[batch, queries, depth], k, v [batch, keys, depth], blocks[batch, blocks of queries, listed] -> o."""
    batch = tl.program_id(1).to(tl.int64)
    query = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = query < queries
    place = batch * queries + query
    left = columns_of(q, place, depth, inside, 0, DEPTH)
    left_rest = left
    if REST:
        left_rest = columns_of(q, place, depth, inside, DEPTH, REST)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    found = tl.zeros([BLOCK, VALUES], tl.float32)
    names = blocks + (batch * tl.num_programs(0) + tl.program_id(0)) * listed
    for start in tl.range(0, listed, STEP, num_stages=STAGES):
        key, there = listed_keys(names, start, listed, keys, BLOCK, STEP)
        tokens = tl.load(count + key, mask=there, other=1).to(tl.float32)
        at = batch * keys + key
        scores = score_keys(left, left_rest, k, at, there, depth, DEPTH, REST)
        scores = tl.where(there[None, :], scores * scale + tl.log2(tokens)[None, :], float("-inf"))
        largest, total, found = add_values(scores, v, at, there, depth, largest, total, found, VALUES)
    store_found(o, place, inside, found, total, depth, VALUES)


def launch(*, q, k, v, blocks, count, o, block, STEP, num_warps, num_stages):
    """q[batch, queries, depth], k, v [batch, keys, depth] -> o; blocks[batch, blocks of queries, listed]."""
    batch, queries, depth = q.shape
    if not o.numel():
        return
    attend_selected[(triton.cdiv(queries, block), batch)](
        q, k, v, blocks, count, o, queries, k.shape[1], depth, blocks.shape[2], LOG2_E * depth**-0.5,
        BLOCK=block, STEP=STEP, **blocks_of(depth, depth), STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
