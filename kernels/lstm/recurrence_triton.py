"""A recurrent layer over time in Triton, as fused by Pöppel et al. 2024, arXiv:2412.07752.

The products of h_{t-1} with the recurrent weights of all gates, then what the cell makes of them and of
pre_t: an LSTM, a GRU or an sLSTM (kernels/lstm/reference.py). A program has ROWS = 16 sequences, the fewest
that matrix instructions multiply, and walks through time with them: no launch a step, and gates stay in
registers. Programs cannot wait for each other, so one has all the units.

1. resident: weights and states stay on chip from the first step to the last, so that a step reads its inputs
   only. The weights are 3 or 4 hidden^2 elements, in shared memory on NVIDIA and in registers on AMD, whose
   sizes say which hidden sizes fit.
2. streamed: any hidden size. Each step takes BLOCK_N units at a time and reads their weights anew, from the
   L2 cache. States lie in memory between steps, two copies of h in turn.

Parallel over sequences only. The limit is the latency of a step, or the bandwidth between a processor and L2.
"""

import torch
import triton
import triton.language as tl

from kernels.activations import sigmoid, softplus, tanh

ROWS = 16


@triton.jit
def gate_weights(r, gate, unit, k, hidden):
    """r[gates hidden, hidden] -> [k, unit], transposed; zeros beyond the units."""
    inside = (k < hidden)[:, None] & (unit < hidden)[None, :]
    return tl.load(r + gate * hidden * hidden + (unit[None, :] * hidden + k[:, None]), mask=inside, other=0.0)


@triton.jit
def advance(first, second, third, fourth, before, c, n, m, CELL: tl.constexpr):
    """What a cell makes of gates and states: h, c, n, m of this step. A GRU's fourth is pre of its third."""
    if CELL == "lstm":
        c = sigmoid(second) * c + sigmoid(first) * tanh(third)
        h = sigmoid(fourth) * tanh(c)
    elif CELL == "gru":
        new = tanh(fourth + sigmoid(first) * third)
        h = new + sigmoid(second) * (before.to(tl.float32) - new)
    else:
        kept = m - softplus(-second)
        m = tl.maximum(kept, first)
        forget, added = tl.exp(kept - m), tl.exp(first - m)
        c = forget * c + added * tanh(third)
        n = forget * n + added
        h = sigmoid(fourth) * (c / n)
    return h, c, n, m


@triton.jit
def gate_inputs(pre, bias, row, unit, hidden, inside, GATES: tl.constexpr, CELL: tl.constexpr):
    """What the products of the gates are added to, in float32; of a GRU's third that is its bias."""
    gates = pre + row[:, None] * GATES * hidden + unit[None, :]
    first = tl.load(gates, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(gates + hidden, mask=inside, other=0.0).to(tl.float32)
    third = tl.load(gates + 2 * hidden, mask=inside, other=0.0).to(tl.float32)
    if CELL == "gru":
        fourth = third
        own = tl.load(bias + unit, mask=unit < hidden, other=0.0).to(tl.float32)
        third = tl.zeros_like(fourth) + own[None, :]
    else:
        fourth = tl.load(gates + 3 * hidden, mask=inside, other=0.0).to(tl.float32)
    return first, second, third, fourth


@triton.jit
def resident(
    pre, r, h0, c0, bias, h, last, steps, batch, hidden,
    CELL: tl.constexpr, GATES: tl.constexpr, ROWS: tl.constexpr, HIDDEN: tl.constexpr,
):  # fmt: skip
    """pre[steps, batch, gates hidden], r[gates hidden, hidden] -> h[steps, batch, hidden].

    Of an LSTM, h0, c0 [batch, hidden] are the first states and last[batch, hidden] is for its c; of a GRU, h0
    and bias[hidden]. HIDDEN >= hidden.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    unit = tl.arange(0, HIDDEN)
    inside = (row < batch)[:, None] & (unit < hidden)[None, :]
    place = row[:, None] * hidden + unit[None, :]
    first_weights = gate_weights(r, 0, unit, unit, hidden)
    second_weights = gate_weights(r, 1, unit, unit, hidden)
    third_weights = gate_weights(r, 2, unit, unit, hidden)
    if CELL != "gru":
        fourth_weights = gate_weights(r, 3, unit, unit, hidden)
    c = tl.zeros([ROWS, HIDDEN], tl.float32)
    n = tl.zeros([ROWS, HIDDEN], tl.float32)
    m = tl.full([ROWS, HIDDEN], float("-inf"), tl.float32)
    state = c.to(h.dtype.element_ty)
    if CELL != "slstm":
        state = tl.load(h0 + place, mask=inside, other=0.0)
    if CELL == "lstm":
        c = tl.load(c0 + place, mask=inside, other=0.0).to(tl.float32)
    for step in range(steps):
        line = step * batch + row
        first, second, third, fourth = gate_inputs(pre, bias, line, unit, hidden, inside, GATES, CELL)
        first = tl.dot(state, first_weights, first, input_precision="ieee")
        second = tl.dot(state, second_weights, second, input_precision="ieee")
        third = tl.dot(state, third_weights, third, input_precision="ieee")
        if CELL != "gru":
            fourth = tl.dot(state, fourth_weights, fourth, input_precision="ieee")
        out, c, n, m = advance(first, second, third, fourth, state, c, n, m, CELL)
        state = out.to(h.dtype.element_ty)
        tl.store(h + line[:, None] * hidden + unit[None, :], state, mask=inside)
    if CELL == "lstm":
        tl.store(last + place, c.to(last.dtype.element_ty), mask=inside)


@triton.jit
def write_first_states(
    h0, c0, hs, cells, known, line, hidden, total,
    CELL: tl.constexpr, ROWS: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The first of two h and the cells' states, of the program's rows, which begin at `line`."""
    nothing = tl.zeros([ROWS, BLOCK_N], tl.float32)
    for start in range(0, hidden, BLOCK_N):
        unit = (start + tl.arange(0, BLOCK_N))[None, :]
        inside = known & (unit < hidden)
        place = line + unit
        if CELL == "slstm":
            tl.store(hs + place, nothing.to(hs.dtype.element_ty), mask=inside)
            tl.store(cells + place, nothing, mask=inside)
            tl.store(cells + total + place, nothing, mask=inside)
            tl.store(cells + 2 * total + place, nothing - float("inf"), mask=inside)
        else:
            tl.store(hs + place, tl.load(h0 + place, mask=inside), mask=inside)
        if CELL == "lstm":
            tl.store(cells + place, tl.load(c0 + place, mask=inside).to(tl.float32), mask=inside)


@triton.jit
def streamed(
    pre, r, h0, c0, bias, h, last, hs, cells, steps, batch, hidden, total,
    CELL: tl.constexpr, GATES: tl.constexpr, ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """The same with room for two hs[2, batch, hidden] and cells[states, batch, hidden]: c, and n and m.

    total = batch hidden.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column, k = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    known = (row < batch)[:, None]
    line = row[:, None] * hidden
    write_first_states(h0, c0, hs, cells, known, line, hidden, total, CELL, ROWS, BLOCK_N)
    for step in range(steps):
        tl.debug_barrier()  # all threads have stored what the step before computed
        before = hs + (step % 2 * batch + row)[:, None] * hidden
        after = hs + ((1 - step % 2) * batch + row)[:, None] * hidden
        for start in range(0, hidden, BLOCK_N):
            unit = start + column
            inside = known & (unit < hidden)[None, :]
            first, second, third, fourth = gate_inputs(
                pre, bias, step * batch + row, unit, hidden, inside, GATES, CELL
            )
            for begin in tl.range(0, hidden, BLOCK_K, num_stages=STAGES):
                depth = begin + k
                state = tl.load(before + depth[None, :], mask=known & (depth < hidden)[None, :], other=0.0)
                first = tl.dot(state, gate_weights(r, 0, unit, depth, hidden), first, input_precision="ieee")
                second = tl.dot(
                    state, gate_weights(r, 1, unit, depth, hidden), second, input_precision="ieee"
                )
                third = tl.dot(state, gate_weights(r, 2, unit, depth, hidden), third, input_precision="ieee")
                if CELL != "gru":
                    fourth = tl.dot(
                        state, gate_weights(r, 3, unit, depth, hidden), fourth, input_precision="ieee"
                    )
            nothing = tl.zeros([ROWS, BLOCK_N], tl.float32)
            c, n, m, old = nothing, nothing, nothing, nothing
            own = cells + line + unit[None, :]
            if CELL == "gru":
                old = tl.load(before + unit[None, :], mask=inside, other=0.0)
            else:
                c = tl.load(own, mask=inside, other=0.0)
            if CELL == "slstm":
                n = tl.load(own + total, mask=inside, other=0.0)
                m = tl.load(own + 2 * total, mask=inside, other=0.0)
            out, c, n, m = advance(first, second, third, fourth, old, c, n, m, CELL)
            if CELL != "gru":
                tl.store(own, c, mask=inside)
            if CELL == "slstm":
                tl.store(own + total, n, mask=inside)
                tl.store(own + 2 * total, m, mask=inside)
            result = out.to(h.dtype.element_ty)
            tl.store(after + unit[None, :], result, mask=inside)
            tl.store(h + (step * batch + row)[:, None] * hidden + unit[None, :], result, mask=inside)
    if CELL == "lstm":
        tl.debug_barrier()
        for start in range(0, hidden, BLOCK_N):
            unit = (start + column)[None, :]
            inside = known & (unit < hidden)
            result = tl.load(cells + line + unit, mask=inside)
            tl.store(last + line + unit, result.to(last.dtype.element_ty), mask=inside)


def run(
    pre, r, h0, c0, bias, h, last, *, cell, gates, states, algorithm, BLOCK_N, BLOCK_K, num_warps, num_stages
):
    """Tensors as those of the kernels; those that a cell does not have are None."""
    steps, batch, hidden = h.shape
    if not batch * hidden:
        return
    grid = (triton.cdiv(batch, ROWS),)
    if algorithm == "resident":
        resident[grid](
            pre, r, h0, c0, bias, h, last, steps, batch, hidden,
            CELL=cell, GATES=gates, ROWS=ROWS, HIDDEN=max(16, triton.next_power_of_2(hidden)),
            num_warps=num_warps,
        )  # fmt: skip
        return
    hs = torch.empty((2, batch, hidden), dtype=h.dtype, device=h.device)
    cells = torch.empty((states, batch, hidden), dtype=torch.float32, device=h.device)
    streamed[grid](
        pre, r, h0, c0, bias, h, last, hs, cells, steps, batch, hidden, batch * hidden,
        CELL=cell, GATES=gates, ROWS=ROWS, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, STAGES=num_stages,
        num_warps=num_warps,
    )  # fmt: skip


def lstm(*, pre, r, h0, c0, h, c, gates, **tunables):
    """As the reference: h and c."""
    run(pre, r, h0, c0, None, h, c, cell="lstm", gates=gates, states=1, **tunables)


def gru(*, pre, r, h0, bias, h, gates, **tunables):
    """As the reference: h."""
    run(pre, r, h0, None, bias, h, None, cell="gru", gates=gates, states=0, **tunables)


def slstm(*, pre, r, h, gates, **tunables):
    """As the reference: h."""
    run(pre, r, None, None, None, h, None, cell="slstm", gates=gates, states=3, **tunables)
