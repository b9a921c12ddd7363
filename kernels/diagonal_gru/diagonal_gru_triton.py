"""GRU with diagonal recurrent weights in Triton: h_t = f_t(h_{t-1}), solved for a window of steps at once.

Newton's method over the sequence (DEER, Lim et al. 2023, arXiv:2309.12252): f_t and its slopes at a guess of
all h, then the corrections d_t = r_t + slope_t d_{t-1} with r_t = f_t(h_{t-1}) - h_t by an associative scan
in log2(WINDOW) rounds, until all |r_t| are a few roundings. As the weights are diagonal, so is the Jacobian
(ParaRNN, Danieli et al. 2025, arXiv:2510.21450).

After k iterations the first k steps are right within roundings, whatever was guessed, because h_0 is known;
so a window needs at most WINDOW iterations, and few if f is nearly linear over the corrections. |h| is at
most max(1, |h_0|): iterates are cut off there, and slopes at 1, so that nothing overflows on the way. With
WINDOW = 1 this is the loop over time. A program has BLOCK_C units of one sequence; h of a window lies in
memory between iterations, because each thread reads what another one wrote for the step before.
"""

import torch
import triton
import triton.language as tl

from kernels.activations import sigmoid, tanh
from kernels.selective_scan.selective_scan_triton import then

RESIDUAL = tl.constexpr(2.0**-22)
"""Of h, or of 1 if it is smaller."""


@triton.jit
def solve(pre, weight, h0, h, states, steps, hidden, WINDOW: tl.constexpr, BLOCK_C: tl.constexpr):
    """pre[batch, steps, 3 hidden], weight[hidden, 3], h0[batch, hidden] -> h[batch, steps, hidden].

    states[batch, WINDOW + 1, hidden] is room for what is before a window, and its iterates.
    """
    unit = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    batch = tl.program_id(1).to(tl.int64)
    known = unit < hidden
    of_reset = tl.load(weight + unit * 3, mask=known, other=0.0).to(tl.float32)[None, :]
    of_update = tl.load(weight + unit * 3 + 1, mask=known, other=0.0).to(tl.float32)[None, :]
    of_new = tl.load(weight + unit * 3 + 2, mask=known, other=0.0).to(tl.float32)[None, :]
    state = tl.load(h0 + batch * hidden + unit, mask=known, other=0.0).to(tl.float32)
    place = tl.arange(0, WINDOW)
    line = states + (batch * (WINDOW + 1) + place)[:, None] * hidden + unit[None, :]
    there = (place >= 0)[:, None] & known[None, :]
    for start in range(0, steps, WINDOW):
        step = start + place
        row = batch * steps + step
        inside = (step < steps)[:, None] & known[None, :]
        gates = pre + row[:, None] * 3 * hidden + unit[None, :]
        resets = tl.load(gates, mask=inside, other=0.0).to(tl.float32)
        updates = tl.load(gates + hidden, mask=inside, other=0.0).to(tl.float32)
        news = tl.load(gates + 2 * hidden, mask=inside, other=0.0).to(tl.float32)
        own = tl.zeros([WINDOW, BLOCK_C], tl.float32) + state[None, :]
        before = own
        limit = tl.maximum(tl.abs(own), 1.0) * (1.0 + 2.0**-20)
        tl.debug_barrier()  # all threads have read the last window
        tl.store(line, own, mask=there & (place == 0)[:, None])
        left = WINDOW + 1
        while left > 0:
            reset = sigmoid(resets + of_reset * before)
            update = sigmoid(updates + of_update * before)
            new = tanh(news + of_new * (reset * before))
            value = new + update * (before - new)
            if WINDOW == 1:
                own = value
                left = 0
            else:
                inner = reset * (1.0 + before * (1.0 - reset) * of_reset) * of_new
                slope = update + (before - new) * update * (1.0 - update) * of_update
                slope += (1.0 - update) * (1.0 - new * new) * inner
                slope = tl.minimum(tl.maximum(slope, -1.0), 1.0)
                residual = value - own
                off = tl.abs(residual) > RESIDUAL * tl.maximum(tl.abs(before), 1.0)
                _, correction = tl.associative_scan((slope, residual), 0, then)
                own = tl.minimum(tl.maximum(own + correction, -limit), limit)
                tl.debug_barrier()  # all threads have read the last iterates
                tl.store(line + hidden, own, mask=there)
                tl.debug_barrier()
                before = tl.load(line, mask=there, other=0.0)
                left = tl.where(tl.max(tl.max(off.to(tl.int32), axis=1), axis=0) > 0, left - 1, 0)
        tl.store(h + row[:, None] * hidden + unit[None, :], own.to(h.dtype.element_ty), mask=inside)
        state = tl.sum(tl.where((place == WINDOW - 1)[:, None], own, 0.0), axis=0)


def launch(*, pre, weight, h0, h, WINDOW, BLOCK_C, num_warps):
    """pre[batch, steps, 3 hidden], weight[hidden, 3], h0[batch, hidden] -> h[batch, steps, hidden]."""
    batch, steps, hidden = h.shape
    if not h.numel():
        return
    states = torch.empty((batch, WINDOW + 1, hidden), dtype=torch.float32, device=h.device)
    solve[(triton.cdiv(hidden, BLOCK_C), batch)](
        pre, weight, h0, h, states, steps, hidden, WINDOW=WINDOW, BLOCK_C=BLOCK_C, num_warps=num_warps
    )
