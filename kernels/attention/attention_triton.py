"""Attention with grouped queries in Triton: o = softmax(q k^T / sqrt(depth)) v.

A program has BLOCK_Q rows, which are queries and, within a query, the heads that share keys and values, and
walks over BLOCK_K keys at a time; scores stay in registers (tile.py). SKIP leaves out blocks that a
mask hides: those after the program's rows, and those before their sliding window (Jiang et al. 2023,
arXiv:2310.06825). num_stages loads the next blocks while this one is computed.

With a mask of blocks (`skipped`) a program asks for each block of keys whether it is left out: all its rows
belong to one block of queries, so that no warp waits for another.

`launch_varlen` is for sequences of any lengths, which lie one after the other (the interface of
FlashAttention for packed sequences, Dao 2023, arXiv:2307.08691). The host does not read the lengths. With
FLAT, it starts as many programs as any lengths could need, and each finds its sequence by the cumulated
numbers of tiles; otherwise the grid has as many programs for every sequence as one of all tokens needs, most
of which find nothing to do.
"""

import triton
import triton.language as tl

from kernels.attention.tile import (
    LOG2_E,
    add_values,
    blocks_of,
    columns_of,
    score_keys,
    store_found,
)


@triton.jit
def add_keys(
    left, left_rest, k, v, start, keys, first_key, query, depth, values_depth, past, scale, largest, total,
    found, STEP, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BLOCK_K: tl.constexpr, DEPTH: tl.constexpr,
    REST: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """What rows have found, with BLOCK_K more keys from `start` on -> largest, total, found."""
    key = start + tl.arange(0, BLOCK_K)
    there = key < keys
    at = first_key + key * STEP
    scores = score_keys(left, left_rest, k, at, there, depth, DEPTH, REST)
    seen = there[None, :]
    if CAUSAL:
        seen = seen & (key[None, :] <= query[:, None] + past)
    if WINDOW:
        seen = seen & (key[None, :] >= query[:, None])
    scores = tl.where(seen, scores * scale, float("-inf"))
    return add_values(scores, v, at, there, values_depth, largest, total, found, VALUES)


@triton.jit
def attend_rows(
    q, k, v, names, own, o, row, place, rows, first_key, groups, keys, depth, values_depth, past, scale,
    first_row, STEP, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BLOCK: tl.constexpr, SKIP: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, DEPTH: tl.constexpr, REST: tl.constexpr,
    VALUES: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Rows `row` of `rows`, which lie at `place` in q and o; key j lies at `first_key + j * STEP` in k and v.

    CAUSAL hides keys after a query's own, WINDOW those more than `past` before it, and BLOCK > 0 the blocks
    of as many keys, before the one with number `own`, whose name is not 0.
    """
    query = row // groups
    inside = row < rows
    left = columns_of(q, place, depth, inside, 0, DEPTH)
    left_rest = left
    if REST:
        left_rest = columns_of(q, place, depth, inside, DEPTH, REST)
    largest = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    found = tl.zeros([BLOCK_Q, VALUES], tl.float32)
    begin, end = 0, keys
    if WINDOW and SKIP:
        begin = first_row // groups
    if CAUSAL and SKIP:
        last = tl.minimum(first_row + BLOCK_Q, rows) - 1
        end = tl.minimum(keys, last // groups + past + 1)
    if BLOCK > 0:
        for start in range(begin, end, BLOCK_K):
            there = (start // BLOCK >= own) | (tl.load(names + start // BLOCK) == 0)
            if there or not SKIP:
                largest, total, found = add_keys(
                    left, left_rest, k, v, start, tl.where(there, keys, 0), first_key, query, depth,
                    values_depth, past, scale, largest, total, found, STEP, CAUSAL, WINDOW, BLOCK_K, DEPTH,
                    REST, VALUES,
                )  # fmt: skip
    else:
        for start in tl.range(begin, end, BLOCK_K, num_stages=STAGES):
            largest, total, found = add_keys(
                left, left_rest, k, v, start, keys, first_key, query, depth, values_depth, past, scale,
                largest, total, found, STEP, CAUSAL, WINDOW, BLOCK_K, DEPTH, REST, VALUES,
            )  # fmt: skip
    store_found(o, place, inside, found, total, values_depth, VALUES)


@triton.jit
def attend(
    q, k, v, skipped, o, groups, queries, keys, depth, values_depth, past, scale,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, BLOCK: tl.constexpr, SKIP: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, DEPTH: tl.constexpr, REST: tl.constexpr,
    VALUES: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """q[batch, groups, queries, depth], k[batch, keys, depth], v[batch, keys, values] -> o."""
    batch = tl.program_id(1).to(tl.int64)
    first_row = tl.program_id(0) * BLOCK_Q
    row = first_row + tl.arange(0, BLOCK_Q)
    place = (batch * groups + row % groups) * queries + row // groups
    names, own = skipped, 0
    if BLOCK > 0:
        block = first_row // groups // BLOCK
        own = tl.minimum((block * BLOCK + past) // BLOCK, tl.cdiv(keys, BLOCK) - 1)
        names += (batch * tl.cdiv(queries, BLOCK) + block) * tl.cdiv(keys, BLOCK)
    attend_rows(
        q, k, v, names, own, o, row, place, groups * queries, batch * keys, groups, keys, depth, values_depth,
        past, scale, first_row, 1, CAUSAL, WINDOW, BLOCK, SKIP, BLOCK_Q, BLOCK_K, DEPTH, REST, VALUES, STAGES,
    )  # fmt: skip


@triton.jit
def attend_varlen(
    q, k, v, ends, o, sequences, heads, groups, depth, scale,
    FLAT: tl.constexpr, SEQUENCES: tl.constexpr, SKIP: tl.constexpr, BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr, DEPTH: tl.constexpr, REST: tl.constexpr, VALUES: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """q[tokens, heads, groups, depth], k, v [tokens, heads, depth] -> o as q; SEQUENCES >= sequences."""
    head = tl.program_id(1).to(tl.int64)
    # Programs start in order, and the last tiles of a sequence see the most keys.
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    sequence = tl.program_id(2)
    if FLAT:
        number = tl.arange(0, SEQUENCES)
        begins = tl.load(ends + number - 1, mask=(number > 0) & (number < sequences), other=0)
        tiles = tl.cdiv((tl.load(ends + number, mask=number < sequences, other=0) - begins) * groups, BLOCK_Q)
        before = tl.cumsum(tiles, 0) <= tile
        sequence = tl.sum(before.to(tl.int32), axis=0)
        tile -= tl.sum(tl.where(before, tiles, 0), axis=0)
    if sequence < sequences:
        begin = tl.load(ends + sequence - 1, mask=sequence > 0, other=0).to(tl.int64)
        length = (tl.load(ends + sequence) - begin).to(tl.int32)
        first_row = tile * BLOCK_Q
        if first_row < length * groups:
            row = first_row + tl.arange(0, BLOCK_Q)
            first_key = begin * heads + head
            place = (first_key + (row // groups) * heads) * groups + row % groups
            attend_rows(
                q, k, v, q, 0, o, row, place, length * groups, first_key, groups, length, depth, depth, 0,
                scale, first_row, heads, True, False, 0, SKIP, BLOCK_Q, BLOCK_K, DEPTH, REST, VALUES, STAGES,
            )  # fmt: skip


def launch(
    *, q, k, v, o, mask, SKIP, BLOCK_Q, BLOCK_K, num_warps, num_stages, skipped=None, block=0
):  # fmt: skip
    """q[batch, groups, queries, depth], k[batch, keys, depth], v[batch, keys, values] -> o.

    With skipped[batch, blocks of queries, blocks of keys] as the reference says.
    """
    batch, groups, queries, depth = q.shape
    keys, values = v.shape[1:]
    if not o.numel():
        return
    attend[(triton.cdiv(groups * queries, BLOCK_Q), batch)](
        q, k, v, skipped, o, groups, queries, keys, depth, values, max(keys - queries, 0),
        LOG2_E * depth**-0.5,
        CAUSAL=mask != "none", WINDOW=mask == "window", BLOCK=block, SKIP=SKIP, BLOCK_Q=BLOCK_Q,
        BLOCK_K=BLOCK_K,
        **blocks_of(depth, values), STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip


def launch_varlen(*, q, k, v, ends, o, FLAT, SKIP, BLOCK_Q, BLOCK_K, num_warps, num_stages):
    """q[tokens, heads, groups, depth], k, v [tokens, heads, depth], ends[sequences] -> o as q."""
    tokens, heads, groups, depth = q.shape
    sequences = len(ends)
    if not q.numel():
        return
    tiles = triton.cdiv(tokens * groups, BLOCK_Q)
    # Each sequence has one tile at most that is not full.
    grid = (tiles + sequences, heads, 1) if FLAT else (tiles, heads, sequences)
    attend_varlen[grid](
        q, k, v, ends, o, sequences, heads, groups, depth, LOG2_E * depth**-0.5,
        FLAT=FLAT, SEQUENCES=triton.next_power_of_2(sequences), SKIP=SKIP, BLOCK_Q=BLOCK_Q, BLOCK_K=BLOCK_K,
        **blocks_of(depth, depth), STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
