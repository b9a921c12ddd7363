"""Attention with grouped queries in Triton: o = softmax(q k^T / sqrt(depth)) v.

A program has BLOCK_Q rows, which are queries and, within a query, the heads that share keys and values, and
walks over BLOCK_K keys at a time. Scores stay in registers: a running maximum and sum of each row scale what
was accumulated (Dao et al. 2022, arXiv:2205.14135). Exponentials are powers of two, with log2(e) in the scale
of the scores. Weights are rounded to the type of the values, whose product uses matrix units; sums are
float32. SKIP leaves out blocks that a mask hides: those after the program's rows, and those before their
sliding window (Jiang et al. 2023, arXiv:2310.06825). num_stages loads the next blocks while this one is
computed.
"""

import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def attend(
    q, k, v, o, groups, queries, keys, depth, past, scale,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, SKIP: tl.constexpr, BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr, DEPTH: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """q[batch, groups, queries, depth], k, v [batch, keys, depth] -> o as q; DEPTH >= depth.

    CAUSAL hides keys after a query's own, WINDOW those more than `past` before it.
    """
    batch = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    query = row // groups
    at = ((batch * groups + row % groups) * queries + query) * depth
    column = tl.arange(0, DEPTH)
    inside = (row < groups * queries)[:, None] & (column < depth)[None, :]
    left = tl.load(q + at[:, None] + column[None, :], mask=inside, other=0.0)
    largest = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    found = tl.zeros([BLOCK_Q, DEPTH], tl.float32)
    begin, end = 0, keys
    if WINDOW and SKIP:
        begin = tl.program_id(0) * BLOCK_Q // groups
    if CAUSAL and SKIP:
        last = tl.minimum((tl.program_id(0) + 1) * BLOCK_Q, groups * queries) - 1
        end = tl.minimum(keys, last // groups + past + 1)
    for start in tl.range(begin, end, BLOCK_K, num_stages=STAGES):
        key = start + tl.arange(0, BLOCK_K)
        place = (batch * keys + key)[:, None] * depth + column[None, :]
        there = (key < keys)[:, None] & (column < depth)[None, :]
        right = tl.load(k + place, mask=there, other=0.0)
        scores = tl.dot(left, tl.trans(right), input_precision="ieee") * scale
        seen = (key < keys)[None, :]
        if CAUSAL:
            seen = seen & (key[None, :] <= query[:, None] + past)
        if WINDOW:
            seen = seen & (key[None, :] >= query[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        top = tl.maximum(largest, tl.max(scores, axis=1))
        # A row whose keys are all hidden so far has no maximum.
        base = tl.where(top == float("-inf"), 0.0, top)
        weights = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(largest - base)
        total = total * shrink + tl.sum(weights, axis=1)
        values = tl.load(v + place, mask=there, other=0.0)
        found = tl.dot(weights.to(values.dtype), values, found * shrink[:, None], input_precision="ieee")
        largest = top
    result = found / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(o + at[:, None] + column[None, :], result.to(o.dtype.element_ty), mask=inside)


def launch(*, q, k, v, o, mask, SKIP, BLOCK_Q, BLOCK_K, num_warps, num_stages):
    """q[batch, groups, queries, depth], k, v [batch, keys, depth] -> o as q."""
    batch, groups, queries, depth = q.shape
    keys = k.shape[1]
    if not q.numel():
        return
    attend[(triton.cdiv(groups * queries, BLOCK_Q), batch)](
        q, k, v, o, groups, queries, keys, depth, max(keys - queries, 0), LOG2_E * depth**-0.5,
        CAUSAL=mask != "none", WINDOW=mask == "window", SKIP=SKIP, BLOCK_Q=BLOCK_Q, BLOCK_K=BLOCK_K,
        DEPTH=max(16, triton.next_power_of_2(depth)), STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
