"""Selective scan in Triton: h_t = exp(-w_t rate) h_{t-1} + w_t x_t b_t with w = softplus(delta), and y_t =
(c_t h_t + skip x_t) silu(z_t). Gu and Dao 2023, arXiv:2312.00752.

A program has BLOCK_C channels of one sequence with all their states, which stay in registers from the first
step to the last: the expanded [batch, steps, channels, states] never reach memory. It takes BLOCK_T steps
at a time. The recurrence is a scan with the operator (d1, a1), (d2, a2) -> (d1 d2, d2 a1 + a2), so these
steps are combined in parallel, in log2(BLOCK_T) rounds (Blelloch 1990, CMU-CS-90-190), and their loads are
one transaction; with BLOCK_T = 1 it is a loop. Parallel over channels and sequences only, so short batches
of narrow models leave a GPU idle.
"""

import triton
import triton.language as tl

from kernels.activations import sigmoid, softplus


@triton.jit
def then(first_decay, first_added, second_decay, second_added):
    """Two spans of steps as one."""
    return first_decay * second_decay, second_decay * first_added + second_added


@triton.jit
def selective_scan(
    x, delta, z, b, c, rate, skip, y, steps, channels, states,
    BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr, STATES: tl.constexpr,
):  # fmt: skip
    """x, delta, z [batch, steps, channels], b, c [batch, steps, states] -> y as x; STATES >= states."""
    channel = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    number = tl.arange(0, STATES)
    batch = tl.program_id(1).to(tl.int64)
    known, used = channel < channels, number < states
    both = known[:, None] & used[None, :]
    rates = tl.load(rate + channel[:, None] * states + number[None, :], mask=both, other=0.0).to(tl.float32)
    direct = tl.load(skip + channel, mask=known, other=0.0).to(tl.float32)
    state = tl.zeros([BLOCK_C, STATES], tl.float32)
    for start in range(0, steps, BLOCK_T):
        step = start + tl.arange(0, BLOCK_T)
        there = step < steps
        inside = there[:, None] & known[None, :]
        row = batch * steps + step
        place = row[:, None] * channels + channel[None, :]
        shared = row[:, None] * states + number[None, :]
        wanted = there[:, None] & used[None, :]
        values = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        # Steps beyond the end leave the state as it is.
        width = softplus(tl.load(delta + place, mask=inside, other=float("-inf")).to(tl.float32))
        left = tl.load(b + shared, mask=wanted, other=0.0).to(tl.float32)
        right = tl.load(c + shared, mask=wanted, other=0.0).to(tl.float32)
        decay = tl.exp(-width[:, :, None] * rates[None, :, :])
        added = (width * values)[:, :, None] * left[:, None, :]
        decay, added = tl.associative_scan((decay, added), 0, then)
        every = decay * state[None, :, :] + added
        total = tl.sum(every * right[:, None, :], axis=2) + direct[None, :] * values
        last = (tl.arange(0, BLOCK_T) == BLOCK_T - 1)[:, None, None]
        state = tl.sum(tl.where(last, every, 0.0), axis=0)
        gate = tl.load(z + place, mask=inside, other=0.0).to(tl.float32)
        result = total * (gate * sigmoid(gate))
        tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


def launch(*, x, delta, z, b, c, rate, skip, y, BLOCK_T, BLOCK_C, num_warps):
    """x, delta, z [batch, steps, channels], b, c [batch, steps, states], rate[channels, states] -> y as x."""
    batch, steps, channels = x.shape
    states = rate.shape[1]
    if not x.numel():
        return
    selective_scan[(triton.cdiv(channels, BLOCK_C), batch)](
        x, delta, z, b, c, rate, skip, y, steps, channels, states,
        BLOCK_T=BLOCK_T, BLOCK_C=BLOCK_C, STATES=triton.next_power_of_2(max(states, 1)), num_warps=num_warps,
    )  # fmt: skip
