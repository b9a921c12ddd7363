"""Gradients of attention with grouped queries in Triton, o = softmax(q k^T / sqrt(depth)) v.

With p the weights, dp = dout v^T and ds = p (dp - sum over keys of p dp): dq = ds k / sqrt(depth),
dk = ds^T q / sqrt(depth), dv = p^T dout. Neither p nor dp reaches memory (Dao 2023, arXiv:2307.08691).

1. `gradient_of_queries`: a program has BLOCK rows, which are queries and, within a query, the heads that
   share keys, and walks over STEP keys at a time, twice. The first walk finds each row's maximum, its sum of
   exponentials and its sum of p dp, which needs no o, and stores them. The second one adds up dq.
2. `gradient_of_keys`: a program has BLOCK keys and walks over STEP rows of all heads that share them, whose
   weights follow from what the first kernel stored. The maximum and the sum stay apart: in one number, the
   logarithm of the sum of exponentials, large scores would take the digits of the sum.

Each gradient is summed by one program, without atomics, so equal inputs give equal bits: 9 products where a
kernel that adds to dq with atomics has 7 with those of the forward pass. All use matrix units; weights and ds
are rounded to the type of the inputs before they are multiplied, sums are float32, exponentials are powers of
two. SKIP leaves out blocks that a causal mask hides; num_stages loads the next blocks while this one is
computed.
"""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def places_of(row, batch, groups, queries, depth):
    """Where rows of q begin: row `query * groups + group`."""
    return ((batch * groups + row % groups) * queries + row // groups) * depth


@triton.jit
def scores_of(left, right, scale, query, key, keys, past, CAUSAL: tl.constexpr):
    """left[A, DEPTH], right[B, DEPTH] -> [A, B]; query and key broadcast to it. Hidden ones are -infinity."""
    scores = tl.dot(left, tl.trans(right), input_precision="ieee") * scale
    seen = key < keys
    if CAUSAL:
        seen = seen & (key <= query + past)
    return tl.where(seen, scores, float("-inf"))


@triton.jit
def gradient_of_queries(
    q, k, v, dout, dq, statistics, groups, queries, keys, depth, past, scale,
    CAUSAL: tl.constexpr, SKIP: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
    DEPTH: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """q, dout [batch, groups, queries, depth], k, v [batch, keys, depth] -> dq as q.

    statistics[batch, 3, groups * queries]: what `gradient_of_keys` needs of each row. DEPTH >= depth.
    """
    batch = tl.program_id(1).to(tl.int64)
    # With a causal mask the last rows have the most to do.
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    rows = groups * queries
    row = block * BLOCK + tl.arange(0, BLOCK)
    query = (row // groups)[:, None]
    column = tl.arange(0, DEPTH)
    wanted = (column < depth)[None, :]
    inside = (row < rows)[:, None] & wanted
    place = places_of(row, batch, groups, queries, depth)[:, None] + column[None, :]
    left = tl.load(q + place, mask=inside, other=0.0)
    upstream = tl.load(dout + place, mask=inside, other=0.0)
    end = keys
    if CAUSAL and SKIP:
        end = tl.minimum(keys, (tl.minimum((block + 1) * BLOCK, rows) - 1) // groups + past + 1)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    weighted = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, end, STEP, num_stages=STAGES):
        key = start + tl.arange(0, STEP)
        other = (batch * keys + key)[:, None] * depth + column[None, :]
        there = (key < keys)[:, None] & wanted
        right = tl.load(k + other, mask=there, other=0.0)
        scores = scores_of(left, right, scale, query, key[None, :], keys, past, CAUSAL)
        values = tl.load(v + other, mask=there, other=0.0)
        slopes = tl.dot(upstream, tl.trans(values), input_precision="ieee")
        # Every row sees the first key, so there is a maximum from the first step on.
        top = tl.maximum(largest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - top[:, None])
        shrink = tl.exp2(largest - top)
        total = total * shrink + tl.sum(weights, axis=1)
        weighted = weighted * shrink + tl.sum(weights * slopes, axis=1)
        largest = top
    inverse = 1.0 / tl.where(total == 0.0, 1.0, total)
    mean = weighted * inverse
    of_row = statistics + 3 * batch * rows + row
    tl.store(of_row, largest, mask=row < rows)
    tl.store(of_row + rows, inverse, mask=row < rows)
    tl.store(of_row + 2 * rows, mean, mask=row < rows)
    found = tl.zeros([BLOCK, DEPTH], tl.float32)
    for start in tl.range(0, end, STEP, num_stages=STAGES):
        key = start + tl.arange(0, STEP)
        other = (batch * keys + key)[:, None] * depth + column[None, :]
        there = (key < keys)[:, None] & wanted
        right = tl.load(k + other, mask=there, other=0.0)
        scores = scores_of(left, right, scale, query, key[None, :], keys, past, CAUSAL)
        weights = tl.exp2(scores - largest[:, None]) * inverse[:, None]
        values = tl.load(v + other, mask=there, other=0.0)
        slopes = tl.dot(upstream, tl.trans(values), input_precision="ieee")
        slopes = weights * (slopes - mean[:, None])
        found = tl.dot(slopes.to(right.dtype), right, found, input_precision="ieee")
    # The scale has log2(e) in it.
    tl.store(dq + place, (found * (scale * 0.6931471805599453)).to(dq.dtype.element_ty), mask=inside)


@triton.jit
def gradient_of_keys(
    q, k, v, dout, statistics, dk, dv, groups, queries, keys, depth, past, scale,
    CAUSAL: tl.constexpr, SKIP: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
    DEPTH: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """q, dout [batch, groups, queries, depth], k, v [batch, keys, depth] -> dk, dv as k.

    statistics[batch, 3, groups * queries]: of `gradient_of_queries`. DEPTH >= depth.
    """
    batch = tl.program_id(1).to(tl.int64)
    rows = groups * queries
    key = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, DEPTH)
    wanted = (column < depth)[None, :]
    inside = (key < keys)[:, None] & wanted
    place = (batch * keys + key)[:, None] * depth + column[None, :]
    left = tl.load(k + place, mask=inside, other=0.0)
    values = tl.load(v + place, mask=inside, other=0.0)
    begin = 0
    if CAUSAL and SKIP:
        begin = tl.maximum(tl.program_id(0) * BLOCK - past, 0) * groups
    of_keys = tl.zeros([BLOCK, DEPTH], tl.float32)
    of_values = tl.zeros([BLOCK, DEPTH], tl.float32)
    for start in tl.range(begin, rows, STEP, num_stages=STAGES):
        row = start + tl.arange(0, STEP)
        known = row < rows
        query = (row // groups)[None, :]
        other = places_of(row, batch, groups, queries, depth)[:, None] + column[None, :]
        there = known[:, None] & wanted
        right = tl.load(q + other, mask=there, other=0.0)
        of_row = statistics + 3 * batch * rows + row
        # The weights in rows beyond the last are 0.
        largest = tl.load(of_row, mask=known, other=float("inf"))[None, :]
        inverse = tl.load(of_row + rows, mask=known, other=0.0)[None, :]
        mean = tl.load(of_row + 2 * rows, mask=known, other=0.0)[None, :]
        scores = scores_of(left, right, scale, query, key[:, None], keys, past, CAUSAL)
        weights = tl.exp2(scores - largest) * inverse
        upstream = tl.load(dout + other, mask=there, other=0.0)
        of_values = tl.dot(weights.to(upstream.dtype), upstream, of_values, input_precision="ieee")
        slopes = tl.dot(values, tl.trans(upstream), input_precision="ieee")
        slopes = weights * (slopes - mean)
        of_keys = tl.dot(slopes.to(right.dtype), right, of_keys, input_precision="ieee")
    # The scale has log2(e) in it.
    tl.store(dk + place, (of_keys * (scale * 0.6931471805599453)).to(dk.dtype.element_ty), mask=inside)
    tl.store(dv + place, of_values.to(dv.dtype.element_ty), mask=inside)


def launch(*, q, k, v, dout, dq, dk, dv, mask, SKIP, BLOCK, STEP, num_warps, num_stages):
    """q, dout [batch, groups, queries, depth], k, v [batch, keys, depth] -> dq as q, dk, dv as k."""
    batch, groups, queries, depth = q.shape
    keys = k.shape[1]
    rows = groups * queries
    statistics = torch.empty((batch, 3, rows), dtype=torch.float32, device=q.device)
    sizes = (groups, queries, keys, depth, max(keys - queries, 0), LOG2_E * depth**-0.5 if depth else 0.0)
    forms = {
        "CAUSAL": mask == "causal", "SKIP": SKIP, "BLOCK": BLOCK, "STEP": STEP,
        "DEPTH": max(16, triton.next_power_of_2(depth)), "STAGES": num_stages, "num_warps": num_warps,
    }  # fmt: skip
    if q.numel():
        grid = (triton.cdiv(rows, BLOCK), batch)
        gradient_of_queries[grid](q, k, v, dout, dq, statistics, *sizes, **forms)
    if k.numel():
        grid = (triton.cdiv(keys, BLOCK), batch)
        gradient_of_keys[grid](q, k, v, dout, statistics, dk, dv, *sizes, **forms)
