"""State space with a scalar decay per head in Triton, in chunks: y_t = S_t c_t with
S_t = exp(-w_t rate) S_{t-1} + w_t x_t b_t^T. Dao and Gu 2024, arXiv:2405.21060.

A program has one head and BLOCK_V columns of x, and walks over CHUNK steps at a time with its columns of the
state in registers, as linear_attention_triton.py does for a constant decay. Exponents within a chunk are sums
of the steps between two others, one column of a matrix each, and not differences of sums from the start of
the chunk: these cancel. All products use matrix units and sums are float32. Decays and w are multiplied into
c b^T and into b, so that x is exact; these and the state are rounded to the type of the inputs before they
are multiplied. Parallel over sequences, heads and columns of x only: the walk itself is sequential.
"""

import triton
import triton.language as tl


@triton.jit
def scan_in_chunks(
    x, width, b, c, rate, y, steps, heads, depth, states,
    CHUNK: tl.constexpr, BLOCK_V: tl.constexpr, STATES: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """x[batch, steps, heads, depth], width[batch, steps, heads], b, c [batch, steps, states] -> y as x.

    STATES >= states.
    """
    head = tl.program_id(1)
    batch = tl.program_id(2).to(tl.int64)
    number = tl.arange(0, STATES)
    wanted = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    # Powers of two, with log2(e) in the exponent.
    slope = tl.load(rate + head).to(tl.float32) * 1.4426950408889634
    place = tl.arange(0, CHUNK)
    state = tl.zeros([STATES, BLOCK_V], tl.float32)
    for start in tl.range(0, steps, CHUNK, num_stages=STAGES):
        step = start + place
        row = batch * steps + step
        known = (step < steps)[:, None] & (number < states)[None, :]
        inside = (step < steps)[:, None] & (wanted < depth)[None, :]
        right = tl.load(c + row[:, None] * states + number[None, :], mask=known, other=0.0)
        left = tl.load(b + row[:, None] * states + number[None, :], mask=known, other=0.0)
        line = row * heads + head
        values = tl.load(x + line[:, None] * depth + wanted[None, :], mask=inside, other=0.0)
        # Steps beyond the end leave the state as it is.
        widths = tl.load(width + line, mask=step < steps, other=0.0).to(tl.float32)
        exponent = -slope * widths
        later = tl.where(place[:, None] > place[None, :], exponent[:, None], 0.0)
        within = tl.where(place[:, None] >= place[None, :], tl.exp2(tl.cumsum(later, axis=0)), 0.0)
        until = tl.exp2(tl.sum(later, axis=0))
        since = tl.exp2(tl.cumsum(exponent, axis=0))
        scores = tl.dot(right, tl.trans(left), input_precision="ieee") * within * widths[None, :]
        before = tl.dot(right, state.to(right.dtype), input_precision="ieee") * since[:, None]
        result = tl.dot(scores.to(values.dtype), values, before, input_precision="ieee")
        tl.store(y + line[:, None] * depth + wanted[None, :], result.to(y.dtype.element_ty), mask=inside)
        decayed = (left.to(tl.float32) * (until * widths)[:, None]).to(left.dtype)
        kept = state * tl.exp2(tl.sum(exponent, axis=0))
        state = tl.dot(tl.trans(decayed), values, kept, input_precision="ieee")


def launch(*, x, width, b, c, rate, y, CHUNK, BLOCK_V, num_warps, num_stages):
    """x[batch, steps, heads, depth], width[batch, steps, heads], b, c [batch, steps, states] -> y as x."""
    batch, steps, heads, depth = x.shape
    states = b.shape[2]
    if not x.numel():
        return
    scan_in_chunks[(triton.cdiv(depth, BLOCK_V), heads, batch)](
        x, width, b, c, rate, y, steps, heads, depth, states,
        CHUNK=CHUNK, BLOCK_V=BLOCK_V, STATES=max(16, triton.next_power_of_2(states)), STAGES=num_stages,
        num_warps=num_warps,
    )  # fmt: skip
