"""Functions of float32 blocks in Triton that neither overflow nor lose small results."""

import triton
import triton.language as tl


@triton.jit
def sigmoid(x):
    """1 / (1 + e^-x). The exponential of -|x| cannot overflow."""
    small = tl.exp(-tl.abs(x))
    return tl.where(x >= 0.0, 1.0, small) / (1.0 + small)


@triton.jit
def tanh(x):
    """Within a rounding of 1: not relative to small results."""
    small = tl.exp(-2.0 * tl.abs(x))
    size = (1.0 - small) / (1.0 + small)
    return tl.where(x >= 0.0, size, -size)


@triton.jit
def softplus(x):
    """log(1 + e^x), right relative to the result: log(1 + s) = 2 artanh(s / (2 + s)), s = e^-|x| <= 1."""
    small = tl.exp(-tl.abs(x))
    ratio = small / (small + 2.0)
    square = ratio * ratio
    series = square * (1.0 / 15.0) + 1.0 / 13.0
    series = series * square + 1.0 / 11.0
    series = series * square + 1.0 / 9.0
    series = series * square + 1.0 / 7.0
    series = series * square + 1.0 / 5.0
    series = series * square + 1.0 / 3.0
    series = series * square + 1.0
    return tl.maximum(x, 0.0) + 2.0 * ratio * series
