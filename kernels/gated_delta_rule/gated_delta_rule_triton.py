"""The gated delta rule in Triton, in chunks: S_t = a_t S_{t-1} + k_t u_t^T, o_t = S_t^T q_t, where
u_t = b_t (v_t - a_t S_{t-1}^T k_t), a_t = exp(-rate_t), b_t = sigmoid(write_t). Yang et al. 2024,
arXiv:2412.06464.

1. `within_chunks`: everything that does not depend on the state, for all chunks in parallel. The updates of
   a chunk solve a triangular system of its decayed products of keys, whose inverse is found row by row
   (Yang et al. 2024, arXiv:2406.06484), and stored with the decayed scores of the queries.
2. `along_time`: a program has one head and BLOCK_V columns of v, and walks over the chunks with its columns
   of the state in registers. Each chunk is five products, which use matrix units.

Sums are float32; the inverse, scores, updates and the state are rounded to the type of the inputs before
they are multiplied. Decays are exponentials of sums that begin where they begin, not of differences of longer
sums, so that a step that forgets everything costs later ones no digits.
"""

import torch
import triton
import triton.language as tl

from kernels.activations import sigmoid
from kernels.attention.tile import columns_of

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def within_chunks(
    q, k, rate, write, inverse, scores, steps, depth, CHUNK: tl.constexpr, DEPTH: tl.constexpr
):  # fmt: skip
    """q, k [heads, steps, depth], rate, write [heads, steps] -> inverse, scores.

    These are [heads, chunks, CHUNK, CHUNK]. Columns of the inverse have the shares of their steps as factors.
    """
    head = tl.program_id(1).to(tl.int64)
    place = tl.arange(0, CHUNK)
    step = tl.program_id(0) * CHUNK + place
    row, inside = head * steps + step, step < steps
    keys = columns_of(k, row, depth, inside, 0, DEPTH)
    queries = columns_of(q, row, depth, inside, 0, DEPTH)
    rates = tl.load(rate + row, mask=inside, other=0.0).to(tl.float32) * LOG2_E
    # Rows are the earlier steps here, columns the later ones.
    later = place[None, :] > place[:, None]
    decays = tl.exp2(-tl.cumsum(tl.where(later, rates[None, :], 0.0), axis=1))
    share = sigmoid(tl.load(write + row, mask=inside, other=0.0).to(tl.float32))
    system = tl.dot(keys, tl.trans(keys), input_precision="ieee") * decays * share[None, :]
    system = tl.where(later, system, 0.0)
    found = tl.where(place[None, :] == place[:, None], 1.0, 0.0)
    for number in range(1, CHUNK):
        factors = tl.sum(tl.where((place == number)[None, :], system, 0.0), axis=1)
        known = tl.sum(factors[:, None] * found, axis=0)
        found = tl.where((place == number)[:, None], found - known[None, :], found)
    at = (head * tl.num_programs(0) + tl.program_id(0)) * CHUNK * CHUNK
    found = found * share[None, :]
    square = place[:, None] * CHUNK + place[None, :]
    tl.store(inverse + at + square, found.to(inverse.dtype.element_ty))
    weights = tl.dot(keys, tl.trans(queries), input_precision="ieee")
    weights = tl.where(place[None, :] >= place[:, None], weights * decays, 0.0)
    transposed = place[None, :] * CHUNK + place[:, None]
    tl.store(scores + at + transposed, weights.to(scores.dtype.element_ty))


@triton.jit
def along_time(
    q, k, v, rate, inverse, scores, o, steps, depth, values,
    CHUNK: tl.constexpr, BLOCK_V: tl.constexpr, DEPTH: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """q, k [heads, steps, depth], v[heads, steps, values] and what `within_chunks` found -> o as v."""
    head = tl.program_id(1).to(tl.int64)
    place = tl.arange(0, CHUNK)
    column = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    square = place[:, None] * CHUNK + place[None, :]
    chunks = tl.cdiv(steps, CHUNK)
    state = tl.zeros([DEPTH, BLOCK_V], tl.float32)
    for chunk in tl.range(0, chunks, num_stages=STAGES):
        step = chunk * CHUNK + place
        row, inside = head * steps + step, step < steps
        keys = columns_of(k, row, depth, inside, 0, DEPTH)
        queries = columns_of(q, row, depth, inside, 0, DEPTH)
        rates = tl.load(rate + row, mask=inside, other=0.0).to(tl.float32) * LOG2_E
        after = inside & (step + 1 < steps) & (place + 1 < CHUNK)
        following = tl.load(rate + row + 1, mask=after, other=0.0).to(tl.float32) * LOG2_E
        since = tl.exp2(-tl.cumsum(rates, 0))[:, None]
        until = tl.exp2(-tl.cumsum(following, 0, reverse=True))[:, None]
        before = state.to(keys.dtype)
        known = tl.dot(keys, before, input_precision="ieee") * since
        mask = inside[:, None] & (column < values)[None, :]
        at_values = row[:, None] * values + column[None, :]
        wanted = tl.load(v + at_values, mask=mask, other=0.0)
        rest = (wanted.to(tl.float32) - known).to(keys.dtype)
        at = (head * chunks + chunk) * CHUNK * CHUNK
        update = tl.dot(tl.load(inverse + at + square), rest, input_precision="ieee").to(keys.dtype)
        result = tl.dot(queries, before, input_precision="ieee") * since
        result = tl.dot(tl.load(scores + at + square), update, result, input_precision="ieee")
        tl.store(o + at_values, result.to(o.dtype.element_ty), mask=mask)
        decayed = (keys.to(tl.float32) * until).to(keys.dtype)
        state = tl.dot(tl.trans(decayed), update, state * tl.exp2(-tl.sum(rates)), input_precision="ieee")


def launch(*, q, k, v, rate, write, o, CHUNK, BLOCK_V, num_warps, num_stages):
    """q, k [batch, heads, steps, depth], v[batch, heads, steps, values], rate, write -> o as v."""
    batch, heads, steps, depth = q.shape
    values = v.shape[-1]
    if not o.numel():
        return
    chunks, width = triton.cdiv(steps, CHUNK), max(16, triton.next_power_of_2(depth))
    inverse = torch.empty(batch * heads * chunks * CHUNK * CHUNK, dtype=q.dtype, device=q.device)
    scores = torch.empty_like(inverse)
    within_chunks[(chunks, batch * heads)](
        q, k, rate, write, inverse, scores, steps, depth, CHUNK=CHUNK, DEPTH=width, num_warps=num_warps
    )
    along_time[(triton.cdiv(values, BLOCK_V), batch * heads)](
        q, k, v, rate, inverse, scores, o, steps, depth, values,
        CHUNK=CHUNK, BLOCK_V=BLOCK_V, DEPTH=width, STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
