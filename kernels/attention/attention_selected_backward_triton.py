"""Gradients of attention of blocks of queries to listed blocks of keys in Triton: no mask of all blocks.

After log-linear sparse attention (LLSA: Zhou et al. 2025, arXiv:2512.16615). With p the weights and
dp = dout v^T, ds = p (dp - sum over keys of p dp): dq = ds k / sqrt(depth), dk = ds^T q / sqrt(depth),
dv = p^T dout.

1. `gradient_of_queries`: a program has one block of queries and walks along its list twice, STEP blocks of
   keys at a time. The first walk finds each row's maximum, its sum of exponentials and its sum of p dp, and
   stores them. The second one adds up dq.
2. PyTorch's stable sort turns the lists around: which blocks of queries name a block of keys.
3. `gradient_of_keys`: a program has one block of keys and walks along those, STEP blocks of queries at a
   time, whose weights follow from what the first kernel stored. Blocks that all lists name, the coarsest
   averages, are last in k and start first.

Each gradient is summed by one program, without atomics, so equal inputs give equal bits. Weights and ds are
rounded to the type of the inputs before they are multiplied; sums are float32, exponentials powers of two.
"""

import torch
import triton
import triton.language as tl

from kernels.attention.tile import LOG2_E, columns_of, listed_keys

LN_2 = tl.constexpr(0.6931471805599453)


@triton.jit
def keys_of(names, count, start, listed, keys, BLOCK: tl.constexpr, STEP: tl.constexpr):
    """The keys of STEP blocks of a list, whether they are there, logarithms of how many tokens they are."""
    key, there = listed_keys(names, start, listed, keys, BLOCK, STEP)
    return key, there, tl.log2(tl.load(count + key, mask=there, other=1).to(tl.float32))


@triton.jit
def gradient_of_queries(
    q, k, v, blocks, count, dout, dq, statistics, queries, keys, depth, listed, scale,
    BLOCK: tl.constexpr, STEP: tl.constexpr, DEPTH: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """q, dout [batch, queries, depth], k, v [batch, keys, depth] -> dq, statistics[3, batch, queries]."""
    batch = tl.program_id(1).to(tl.int64)
    query = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = query < queries
    place = batch * queries + query
    left = columns_of(q, place, depth, inside, 0, DEPTH)
    upstream = columns_of(dout, place, depth, inside, 0, DEPTH)
    names = blocks + (batch * tl.num_programs(0) + tl.program_id(0)) * listed
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    mean = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, listed, STEP, num_stages=STAGES):
        key, there, tokens = keys_of(names, count, start, listed, keys, BLOCK, STEP)
        at = batch * keys + key
        right = columns_of(k, at, depth, there, 0, DEPTH)
        scores = tl.dot(left, tl.trans(right), input_precision="ieee") * scale + tokens[None, :]
        scores = tl.where(there[None, :], scores, float("-inf"))
        values = columns_of(v, at, depth, there, 0, DEPTH)
        slopes = tl.dot(upstream, tl.trans(values), input_precision="ieee")
        top = tl.maximum(largest, tl.max(scores, axis=1))
        # A row whose keys are all hidden so far has no maximum.
        base = tl.where(top == float("-inf"), 0.0, top)
        weights = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(largest - base)
        total = total * shrink + tl.sum(weights, axis=1)
        mean = mean * shrink + tl.sum(weights * slopes, axis=1)
        largest = top
    inverse = tl.where(total == 0.0, 0.0, 1.0 / total)
    mean *= inverse
    row, all_rows = statistics + place, tl.num_programs(1).to(tl.int64) * queries
    tl.store(row, largest, mask=inside)
    tl.store(row + all_rows, inverse, mask=inside)
    tl.store(row + 2 * all_rows, mean, mask=inside)
    found = tl.zeros([BLOCK, DEPTH], tl.float32)
    for start in tl.range(0, listed, STEP, num_stages=STAGES):
        key, there, tokens = keys_of(names, count, start, listed, keys, BLOCK, STEP)
        at = batch * keys + key
        right = columns_of(k, at, depth, there, 0, DEPTH)
        scores = tl.dot(left, tl.trans(right), input_precision="ieee") * scale + tokens[None, :]
        weights = tl.where(there[None, :], tl.exp2(scores - largest[:, None]) * inverse[:, None], 0.0)
        values = columns_of(v, at, depth, there, 0, DEPTH)
        slopes = tl.dot(upstream, tl.trans(values), input_precision="ieee")
        ds = (weights * (slopes - mean[:, None])).to(right.dtype)
        found = tl.dot(ds, right, found, input_precision="ieee")
    column = tl.arange(0, DEPTH)
    mask = inside[:, None] & (column < depth)[None, :]
    result = found * (scale * LN_2)
    tl.store(dq + place[:, None] * depth + column[None, :], result.to(dq.dtype.element_ty), mask=mask)


@triton.jit
def gradient_of_keys(
    q, k, v, count, dout, ends, members, statistics, dk, dv, queries, keys, depth, scale,
    BLOCK: tl.constexpr, STEP: tl.constexpr, DEPTH: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Of the keys of one block: members[ends[block - 1]] up to members[ends[block]] name it -> dk, dv."""
    batch = tl.program_id(1).to(tl.int64)
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    key = block * BLOCK + tl.arange(0, BLOCK)
    there = key < keys
    own = batch * keys + key
    left = columns_of(k, own, depth, there, 0, DEPTH)
    values = columns_of(v, own, depth, there, 0, DEPTH)
    tokens = tl.log2(tl.load(count + key, mask=there, other=1).to(tl.float32))
    all_rows = tl.num_programs(1).to(tl.int64) * queries
    number = batch * tl.num_programs(0) + block
    first = tl.load(ends + number - 1, mask=number > 0, other=0)
    last = tl.load(ends + number)
    lane = tl.arange(0, BLOCK * STEP)
    of_keys = tl.zeros([BLOCK, DEPTH], tl.float32)
    of_values = tl.zeros([BLOCK, DEPTH], tl.float32)
    for start in tl.range(first, last, STEP, num_stages=STAGES):
        member = start + lane // BLOCK
        query = tl.load(members + member, mask=member < last, other=0) * BLOCK + lane % BLOCK
        inside = (member < last) & (query < queries)
        place = batch * queries + query
        right = columns_of(q, place, depth, inside, 0, DEPTH)
        upstream = columns_of(dout, place, depth, inside, 0, DEPTH)
        largest = tl.load(statistics + place, mask=inside, other=0.0)
        inverse = tl.load(statistics + place + all_rows, mask=inside, other=0.0)
        mean = tl.load(statistics + place + 2 * all_rows, mask=inside, other=0.0)
        scores = tl.dot(left, tl.trans(right), input_precision="ieee") * scale + tokens[:, None]
        seen = there[:, None] & inside[None, :]
        weights = tl.where(seen, tl.exp2(scores - largest[None, :]) * inverse[None, :], 0.0)
        slopes = tl.dot(values, tl.trans(upstream), input_precision="ieee")
        ds = (weights * (slopes - mean[None, :])).to(right.dtype)
        of_values = tl.dot(weights.to(upstream.dtype), upstream, of_values, input_precision="ieee")
        of_keys = tl.dot(ds, right, of_keys, input_precision="ieee")
    column = tl.arange(0, DEPTH)
    mask = there[:, None] & (column < depth)[None, :]
    to = own[:, None] * depth + column[None, :]
    result = of_keys * (scale * LN_2)
    tl.store(dk + to, result.to(dk.dtype.element_ty), mask=mask)
    tl.store(dv + to, of_values.to(dv.dtype.element_ty), mask=mask)


def turned_around(blocks, key_blocks):
    """blocks[batch, blocks of queries, listed] -> ends[batch * key_blocks], members, by block of keys.

    Numbers beyond the last block come after all others.
    """
    batch, query_blocks, listed = blocks.shape
    everything = batch * key_blocks
    first = (blocks.new_ones(batch, 1, 1).cumsum(0) - 1) * key_blocks
    names, order = (blocks + first).masked_fill(blocks >= key_blocks, everything).flatten().sort(stable=True)
    ends = torch.searchsorted(names, names.new_ones(everything).cumsum(0) - 1, right=True)
    return ends.int(), (order // listed % query_blocks).int()


def launch(*, q, k, v, blocks, count, dout, dq, dk, dv, block, STEP, num_warps, num_stages):
    """q, dout [batch, queries, depth], k, v [batch, keys, depth] -> dq, dk, dv."""
    batch, queries, depth = q.shape
    keys, listed = k.shape[1], blocks.shape[2]
    if not batch:
        return
    key_blocks = triton.cdiv(keys, block)
    statistics = torch.empty(3, batch, queries, dtype=torch.float32, device=q.device)
    tile = {"BLOCK": block, "STEP": STEP, "DEPTH": max(16, triton.next_power_of_2(depth))}
    tile |= {"STAGES": num_stages, "num_warps": num_warps}
    scale = LOG2_E * depth**-0.5
    if queries:
        gradient_of_queries[(triton.cdiv(queries, block), batch)](
            q, k, v, blocks, count, dout, dq, statistics, queries, keys, depth, listed, scale, **tile
        )
    ends, members = turned_around(blocks, key_blocks)
    if keys:
        gradient_of_keys[(key_blocks, batch)](
            q, k, v, count, dout, ends, members, statistics, dk, dv, queries, keys, depth, scale, **tile
        )
