"""Depthwise causal convolution with SiLU in Triton: y_t = silu(z_t), z_t = bias + sum over i of
weight_i x_{t - taps + 1 + i}.

A program computes BLOCK_T steps of BLOCK_C channels. It loads the block once for each tap, one step later
each time: all but one of these loads hit the L1 cache, and memory sees x once. Bound by memory bandwidth.
Channels lie next to each other, so a filter is one row of scalars per channel, loaded once for all steps of
the program: a higher block reads fewer weights and fewer steps twice. Products are summed in float32.
"""

import triton
import triton.language as tl


@triton.jit
def causal_conv1d(
    x, weight, bias, y, steps, channels,
    TAPS: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """x[batch, steps, channels], weight[channels, TAPS], bias[channels] -> y as x."""
    start = tl.program_id(2).to(tl.int64) * steps * channels
    step = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    channel = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    there = channel < channels
    place = start + step.to(tl.int64)[:, None] * channels + channel[None, :]
    total = tl.zeros([BLOCK_T, BLOCK_C], tl.float32)
    total += tl.load(bias + channel, mask=there, other=0.0).to(tl.float32)[None, :]
    for tap in tl.static_range(TAPS):
        back = TAPS - 1 - tap
        inside = ((step >= back) & (step < steps))[:, None] & there[None, :]
        values = tl.load(x + place - back * channels, mask=inside, other=0.0).to(tl.float32)
        factor = tl.load(weight + channel * TAPS + tap, mask=there, other=0.0).to(tl.float32)
        total += values * factor[None, :]
    # The exponential of -|z| cannot overflow.
    small = tl.exp(-tl.abs(total))
    result = total * tl.where(total >= 0.0, 1.0, small) / (1.0 + small)
    tl.store(y + place, result.to(y.dtype.element_ty), mask=(step < steps)[:, None] & there[None, :])


def launch(*, x, weight, bias, y, BLOCK_T, BLOCK_C, num_warps):
    """x[batch, steps, channels], weight[channels, taps], bias[channels] -> y as x."""
    batch, steps, channels = x.shape
    if not x.numel():
        return
    grid = (triton.cdiv(steps, BLOCK_T), triton.cdiv(channels, BLOCK_C), batch)
    causal_conv1d[grid](
        x, weight, bias, y, steps, channels,
        TAPS=weight.shape[1], BLOCK_T=BLOCK_T, BLOCK_C=BLOCK_C, num_warps=num_warps,
    )  # fmt: skip
