"""Gradients of root-mean-square normalisation in Triton, y = x r weight with r = 1 / sqrt(mean(x^2) + eps):
dx = r (g - x r^2 mean(g x)) with g = dy weight, and dweight = sum over rows of dy x r.

1. `rms_norm_backward_rows`: a program walks over PIECE rows, each wholly in registers, writes their dx and
   keeps the sum of their dy x r in registers as well. Both x and dy are read once.
2. dweight is a sum over all rows, which no program sees. It is split: every program stores its sum in a row
   of its own of a float32 buffer, and `rms_norm_backward_weight` adds those rows up, BLOCK columns a program.
   No atomics, so the order of the sum, and with it every bit, depends on the shape alone.

Bound by memory bandwidth. A larger PIECE means fewer partial sums to write and read, and fewer programs.
Rows must fit the registers of a program. Accumulation is in float32.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_backward_rows(
    x, weight, dy, dx, sums, rows, cols, x_stride, dy_stride, dx_stride, eps,
    PIECE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """x, dy [rows, cols], weight[cols] -> dx[rows, cols], sums[programs, cols]; BLOCK >= cols."""
    program = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    scale = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for step in range(PIECE):
        row = program * PIECE + step
        inside = (col < cols) & (row < rows)
        values = tl.load(x + row * x_stride + col, mask=inside, other=0.0).to(tl.float32)
        upstream = tl.load(dy + row * dy_stride + col, mask=inside, other=0.0).to(tl.float32)
        inverse = tl.rsqrt(tl.sum(values * values, axis=0) / cols + eps)
        normal = values * inverse
        scaled = upstream * scale
        slope = tl.sum(scaled * normal, axis=0) / cols
        result = inverse * (scaled - normal * slope)
        tl.store(dx + row * dx_stride + col, result.to(dx.dtype.element_ty), mask=inside)
        total += upstream * normal
    tl.store(sums + program * cols + col, total, mask=col < cols)


@triton.jit
def rms_norm_backward_weight(sums, dweight, pieces, cols, BLOCK: tl.constexpr):
    """sums[pieces, cols] -> dweight[cols]."""
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(pieces):
        total += tl.load(sums + col, mask=col < cols, other=0.0)
        sums += cols
    tl.store(dweight + col, total.to(dweight.dtype.element_ty), mask=col < cols)


def launch(*, x, weight, dy, dx, dweight, eps, PIECE, BLOCK, num_warps):
    """x, dy [rows, cols] with any row strides, weight[cols] -> dx[rows, cols], dweight[cols]."""
    rows, cols = x.shape
    if cols == 0:
        return
    pieces = triton.cdiv(rows, PIECE)
    sums = torch.empty((pieces, cols), dtype=torch.float32, device=x.device)
    if rows:
        rms_norm_backward_rows[(pieces,)](
            x, weight, dy, dx, sums, rows, cols, x.stride(0), dy.stride(0), dx.stride(0), eps,
            PIECE=PIECE, BLOCK=triton.next_power_of_2(cols), num_warps=num_warps,
        )  # fmt: skip
    rms_norm_backward_weight[(triton.cdiv(cols, BLOCK),)](sums, dweight, pieces, cols, BLOCK=BLOCK)
