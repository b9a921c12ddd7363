"""One layer of an LSTM over time in Triton, as fused by Pöppel et al. 2024, arXiv:2412.07752.

gates = pre_t + h_{t-1} r^T, c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g), h_t = sigmoid(o) tanh(c_t).
A program has ROWS = 16 sequences, the fewest that matrix instructions multiply, and walks through time with
them: no launch a step, and gates stay in registers. Programs cannot wait for each other, so one has all the
units.

1. resident: weights and states stay on chip from the first step to the last, so that a step reads its inputs
   only. The weights are 4 hidden^2 elements, in shared memory on NVIDIA and in registers on AMD, whose sizes
   say which hidden sizes fit.
2. streamed: any hidden size. Each step takes BLOCK_N units at a time and reads their weights anew, from the
   L2 cache. States lie in memory between steps, two copies of h in turn.

Parallel over sequences only. The limit is the latency of a step, or the bandwidth between a processor and L2.
"""

import torch
import triton
import triton.language as tl

ROWS = 16


@triton.jit
def sigmoid(x):
    """The exponential of -|x| cannot overflow."""
    small = tl.exp(-tl.abs(x))
    return tl.where(x >= 0.0, 1.0, small) / (1.0 + small)


@triton.jit
def tanh(x):
    """Right within a rounding of 1, which is what its product with a gate is rounded to."""
    small = tl.exp(-2.0 * tl.abs(x))
    size = (1.0 - small) / (1.0 + small)
    return tl.where(x >= 0.0, size, -size)


@triton.jit
def gate_weights(r, gate, unit, k, hidden):
    """r[4 hidden, hidden] -> [k, unit], transposed; zeros beyond the units."""
    inside = (k < hidden)[:, None] & (unit < hidden)[None, :]
    return tl.load(r + gate * hidden * hidden + (unit[None, :] * hidden + k[:, None]), mask=inside, other=0.0)


@triton.jit
def lstm_resident(pre, r, h0, c0, h, c, steps, batch, hidden, ROWS: tl.constexpr, HIDDEN: tl.constexpr):
    """pre[steps, batch, 4 hidden], r[4 hidden, hidden], h0, c0 [batch, hidden] -> h[steps, batch, hidden], c.

    HIDDEN >= hidden.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    unit = tl.arange(0, HIDDEN)
    inside = (row < batch)[:, None] & (unit < hidden)[None, :]
    place = row[:, None] * hidden + unit[None, :]
    input_weights = gate_weights(r, 0, unit, unit, hidden)
    forget_weights = gate_weights(r, 1, unit, unit, hidden)
    cell_weights = gate_weights(r, 2, unit, unit, hidden)
    output_weights = gate_weights(r, 3, unit, unit, hidden)
    state = tl.load(h0 + place, mask=inside, other=0.0)
    cell = tl.load(c0 + place, mask=inside, other=0.0).to(tl.float32)
    for step in range(steps):
        gates = pre + (step * batch + row)[:, None] * 4 * hidden + unit[None, :]
        i = tl.load(gates, mask=inside, other=0.0).to(tl.float32)
        f = tl.load(gates + hidden, mask=inside, other=0.0).to(tl.float32)
        g = tl.load(gates + 2 * hidden, mask=inside, other=0.0).to(tl.float32)
        o = tl.load(gates + 3 * hidden, mask=inside, other=0.0).to(tl.float32)
        i = tl.dot(state, input_weights, i, input_precision="ieee")
        f = tl.dot(state, forget_weights, f, input_precision="ieee")
        g = tl.dot(state, cell_weights, g, input_precision="ieee")
        o = tl.dot(state, output_weights, o, input_precision="ieee")
        cell = sigmoid(f) * cell + sigmoid(i) * tanh(g)
        state = (sigmoid(o) * tanh(cell)).to(h.dtype.element_ty)
        tl.store(h + (step * batch + row)[:, None] * hidden + unit[None, :], state, mask=inside)
    tl.store(c + place, cell.to(c.dtype.element_ty), mask=inside)


@triton.jit
def lstm_streamed(
    pre, r, h0, c0, h, c, states, cells, steps, batch, hidden,
    ROWS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The same with room for two states[2, batch, hidden] and cells[batch, hidden]."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column, k = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    known = (row < batch)[:, None]
    line = row[:, None] * hidden
    for first in range(0, hidden, BLOCK_N):
        unit = (first + column)[None, :]
        inside = known & (unit < hidden)
        tl.store(states + line + unit, tl.load(h0 + line + unit, mask=inside), mask=inside)
        tl.store(cells + line + unit, tl.load(c0 + line + unit, mask=inside).to(tl.float32), mask=inside)
    for step in range(steps):
        tl.debug_barrier()  # all threads have stored what the step before computed
        before = states + (step % 2 * batch + row)[:, None] * hidden
        after = states + ((1 - step % 2) * batch + row)[:, None] * hidden
        for first in range(0, hidden, BLOCK_N):
            unit = first + column
            inside = known & (unit < hidden)[None, :]
            gates = pre + (step * batch + row)[:, None] * 4 * hidden + unit[None, :]
            i = tl.load(gates, mask=inside, other=0.0).to(tl.float32)
            f = tl.load(gates + hidden, mask=inside, other=0.0).to(tl.float32)
            g = tl.load(gates + 2 * hidden, mask=inside, other=0.0).to(tl.float32)
            o = tl.load(gates + 3 * hidden, mask=inside, other=0.0).to(tl.float32)
            for start in tl.range(0, hidden, BLOCK_K, num_stages=STAGES):
                depth = start + k
                state = tl.load(before + depth[None, :], mask=known & (depth < hidden)[None, :], other=0.0)
                i = tl.dot(state, gate_weights(r, 0, unit, depth, hidden), i, input_precision="ieee")
                f = tl.dot(state, gate_weights(r, 1, unit, depth, hidden), f, input_precision="ieee")
                g = tl.dot(state, gate_weights(r, 2, unit, depth, hidden), g, input_precision="ieee")
                o = tl.dot(state, gate_weights(r, 3, unit, depth, hidden), o, input_precision="ieee")
            old = tl.load(cells + line + unit[None, :], mask=inside, other=0.0)
            cell = sigmoid(f) * old + sigmoid(i) * tanh(g)
            result = (sigmoid(o) * tanh(cell)).to(h.dtype.element_ty)
            tl.store(cells + line + unit[None, :], cell, mask=inside)
            tl.store(after + unit[None, :], result, mask=inside)
            tl.store(h + (step * batch + row)[:, None] * hidden + unit[None, :], result, mask=inside)
    tl.debug_barrier()
    for first in range(0, hidden, BLOCK_N):
        unit = (first + column)[None, :]
        inside = known & (unit < hidden)
        result = tl.load(cells + line + unit, mask=inside)
        tl.store(c + line + unit, result.to(c.dtype.element_ty), mask=inside)


def launch(*, pre, r, h0, c0, h, c, algorithm, BLOCK_N, BLOCK_K, num_warps, num_stages):
    """pre[steps, batch, 4 hidden], r[4 hidden, hidden], h0, c0 [batch, hidden] -> h, c as the reference."""
    steps, batch, hidden = h.shape
    if not c.numel():
        return
    grid = (triton.cdiv(batch, ROWS),)
    if algorithm == "resident":
        lstm_resident[grid](
            pre, r, h0, c0, h, c, steps, batch, hidden,
            ROWS=ROWS, HIDDEN=max(16, triton.next_power_of_2(hidden)), num_warps=num_warps,
        )  # fmt: skip
        return
    states = torch.empty((2, batch, hidden), dtype=h.dtype, device=h.device)
    cells = torch.empty((batch, hidden), dtype=torch.float32, device=h.device)
    lstm_streamed[grid](
        pre, r, h0, c0, h, c, states, cells, steps, batch, hidden,
        ROWS=ROWS, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
