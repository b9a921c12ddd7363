"""Causal linear attention with a decay per head in Triton, in chunks: o_t = q_t S_t with
S_t = exp(-rate) S_{t-1} + k_t v_t^T.

A program has one head and BLOCK_V columns of v, and walks over CHUNK steps at a time with its columns of
the state in registers (Yang et al. 2024, arXiv:2312.06635; Dao and Gu 2024, arXiv:2405.21060). Within a
chunk the scores q k^T are masked, decayed and multiplied by v; what lies before the chunk comes from the
state. All products use matrix units and sums are float32; scores and the state are rounded to the type of
the inputs before they are multiplied. Every exponent is at most 0. A longer CHUNK means fewer products with
the state and more masked scores. Parallel over sequences, heads and columns of v only: the walk itself is
sequential.
"""

import triton
import triton.language as tl


@triton.jit
def attend_in_chunks(
    q, k, v, rate, o, heads, steps, depth,
    CHUNK: tl.constexpr, BLOCK_V: tl.constexpr, DEPTH: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """q, k, v [batch, heads, steps, depth], rate[heads] -> o as q; DEPTH >= depth."""
    head = tl.program_id(1).to(tl.int64)
    column = tl.arange(0, DEPTH)
    wanted = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    # Powers of two, with log2(e) in the exponent.
    slope = tl.load(rate + head % heads).to(tl.float32) * 1.4426950408889634
    place = tl.arange(0, CHUNK)
    distance = place[:, None] - place[None, :]
    within = tl.where(distance >= 0, tl.exp2(-slope * tl.maximum(distance, 0)), 0.0)
    since = tl.exp2(-slope * (place + 1))
    state = tl.zeros([DEPTH, BLOCK_V], tl.float32)
    for start in tl.range(0, steps, CHUNK, num_stages=STAGES):
        step = start + place
        row = (head * steps + step) * depth
        known = (step < steps)[:, None] & (column < depth)[None, :]
        inside = (step < steps)[:, None] & (wanted < depth)[None, :]
        queries = tl.load(q + row[:, None] + column[None, :], mask=known, other=0.0)
        keys = tl.load(k + row[:, None] + column[None, :], mask=known, other=0.0)
        values = tl.load(v + row[:, None] + wanted[None, :], mask=inside, other=0.0)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * within
        before = tl.dot(queries, state.to(queries.dtype), input_precision="ieee") * since[:, None]
        result = tl.dot(scores.to(values.dtype), values, before, input_precision="ieee")
        tl.store(o + row[:, None] + wanted[None, :], result.to(o.dtype.element_ty), mask=inside)
        until = tl.exp2(-slope * (CHUNK - 1 - place))
        decayed = (keys.to(tl.float32) * until[:, None]).to(keys.dtype)
        state = tl.dot(tl.trans(decayed), values, state * tl.exp2(-slope * CHUNK), input_precision="ieee")


def launch(*, q, k, v, rate, o, CHUNK, BLOCK_V, num_warps, num_stages):
    """q, k, v [batch, heads, steps, depth], rate[heads] -> o as q."""
    batch, heads, steps, depth = q.shape
    if not q.numel():
        return
    attend_in_chunks[(triton.cdiv(depth, BLOCK_V), batch * heads)](
        q, k, v, rate, o, heads, steps, depth,
        CHUNK=CHUNK, BLOCK_V=BLOCK_V, DEPTH=max(16, triton.next_power_of_2(depth)), STAGES=num_stages,
        num_warps=num_warps,
    )  # fmt: skip
