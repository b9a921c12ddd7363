"""Gradients of the causal convolution in Triton, y = silu(z) with z_t = bias + sum over i of weight_i x_{t -
taps + 1 + i}: dz = dy s (1 + z (1 - s)) with s the logistic function of z, dx_t = sum over i of weight_i
dz_{t + taps - 1 - i}, dweight_i = sum over t of dz_t x_{t - taps + 1 + i}, dbias = sum over t of dz_t.

1. `causal_conv1d_backward_block`: a program has BLOCK_T steps of BLOCK_C channels. dx needs dz of up to
   taps - 1 steps later, which belong to the next program as well: dz is computed again for each tap, from
   loads that hit the L1 cache, so nothing passes between programs and memory sees x and dy once.
2. dweight and dbias are sums over all steps. Each program stores its part in rows of its own of a float32
   buffer, and `causal_conv1d_backward_sums` adds them up. No atomics, so every bit depends on the shape
   alone.

Bound by memory bandwidth; a higher BLOCK_T means fewer partial sums to write and read.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def before_activation(x, weight, bias, place, step, steps, channel, channels, TAPS: tl.constexpr):
    """z of the steps, [BLOCK_T, BLOCK_C]."""
    there = channel < channels
    total = tl.load(bias + channel, mask=there, other=0.0).to(tl.float32)[None, :]
    for tap in tl.static_range(TAPS):
        back = TAPS - 1 - tap
        inside = ((step >= back) & (step < steps))[:, None] & there[None, :]
        values = tl.load(x + place - back * channels, mask=inside, other=0.0).to(tl.float32)
        factor = tl.load(weight + channel * TAPS + tap, mask=there, other=0.0).to(tl.float32)
        total = total + values * factor[None, :]
    return total


@triton.jit
def causal_conv1d_backward_block(
    x, weight, bias, dy, dx, sums, steps, channels,
    TAPS: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """x, dy [batch, steps, channels], weight[channels, TAPS] -> dx, sums[programs, TAPS + 1, channels]."""
    first = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    channel = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    there = channel < channels
    start = tl.program_id(2).to(tl.int64) * steps * channels
    total = tl.zeros([BLOCK_T, BLOCK_C], tl.float32)
    row = (tl.program_id(2).to(tl.int64) * tl.num_programs(0) + tl.program_id(0)) * (TAPS + 1)
    for later in tl.static_range(TAPS):
        step = first + later
        inside = (step < steps)[:, None] & there[None, :]
        place = start + step.to(tl.int64)[:, None] * channels + channel[None, :]
        z = before_activation(x, weight, bias, place, step, steps, channel, channels, TAPS)
        # The exponential of -|z| cannot overflow.
        small = tl.exp(-tl.abs(z))
        share = tl.where(z >= 0.0, 1.0, small) / (1.0 + small)
        upstream = tl.load(dy + place, mask=inside, other=0.0).to(tl.float32)
        dz = tl.where(inside, upstream * share * (1.0 + z * (1.0 - share)), 0.0)
        factor = tl.load(weight + channel * TAPS + (TAPS - 1 - later), mask=there, other=0.0).to(tl.float32)
        total += tl.where(inside, dz * factor[None, :], 0.0)
        if later == 0:
            tl.store(sums + (row + TAPS) * channels + channel, tl.sum(dz, axis=0), mask=there)
            for tap in tl.static_range(TAPS):
                back = TAPS - 1 - tap
                known = ((step >= back) & (step < steps))[:, None] & there[None, :]
                values = tl.load(x + place - back * channels, mask=known, other=0.0).to(tl.float32)
                tl.store(sums + (row + tap) * channels + channel, tl.sum(dz * values, axis=0), mask=there)
    inside = (first < steps)[:, None] & there[None, :]
    place = start + first.to(tl.int64)[:, None] * channels + channel[None, :]
    tl.store(dx + place, total.to(dx.dtype.element_ty), mask=inside)


@triton.jit
def causal_conv1d_backward_sums(
    sums, dweight, dbias, programs, channels, TAPS: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """sums[programs, TAPS + 1, channels] -> dweight[channels, TAPS], dbias[channels]."""
    channel = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    there = channel < channels
    for row in tl.static_range(TAPS + 1):
        total = tl.zeros([BLOCK_C], tl.float32)
        for program in range(programs):
            place = (program * (TAPS + 1) + row) * channels + channel
            total += tl.load(sums + place, mask=there, other=0.0)
        if row < TAPS:
            tl.store(dweight + channel * TAPS + row, total.to(dweight.dtype.element_ty), mask=there)
        else:
            tl.store(dbias + channel, total.to(dbias.dtype.element_ty), mask=there)


def launch(*, x, weight, bias, dy, dx, dweight, dbias, BLOCK_T, BLOCK_C, num_warps):
    """x, dy [batch, steps, channels], weight[channels, taps], bias[channels] -> dx, dweight, dbias."""
    batch, steps, channels = x.shape
    taps = weight.shape[1]
    if channels == 0:
        return
    pieces, blocks = triton.cdiv(steps, BLOCK_T), triton.cdiv(channels, BLOCK_C)
    sums = torch.empty((batch * pieces, taps + 1, channels), dtype=torch.float32, device=x.device)
    if x.numel():
        causal_conv1d_backward_block[(pieces, blocks, batch)](
            x, weight, bias, dy, dx, sums, steps, channels,
            TAPS=taps, BLOCK_T=BLOCK_T, BLOCK_C=BLOCK_C, num_warps=num_warps,
        )  # fmt: skip
    causal_conv1d_backward_sums[(blocks,)](
        sums, dweight, dbias, batch * pieces, channels, TAPS=taps, BLOCK_C=BLOCK_C
    )
