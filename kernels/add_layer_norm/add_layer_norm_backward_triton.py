"""Gradients of residual addition and layer normalisation in Triton. With n = (h - mean(h)) r, r the inverse
of the standard deviation, and g = dy weight: dx = dh + r (g - mean(g) - n mean(g n)), dweight = sum over rows
of dy n, dbias = sum over rows of dy.

1. `add_layer_norm_backward_rows`: a program walks over PIECE rows, each wholly in registers, writes their dx
   and keeps the sums of their dy n and dy in registers as well. h, dy and dh are read once.
2. dweight and dbias are sums over all rows, which no program sees. They are split: every program stores its
   sums in a row of its own of a float32 buffer, and `add_layer_norm_backward_columns` adds those rows up,
   BLOCK columns a program. No atomics, so the order of the sums, and with it every bit, depends on the shape
   alone.

Bound by memory bandwidth. A larger PIECE means fewer partial sums to write and read, and fewer programs. Rows
must fit the registers of a program. No gradient depends on the values of bias. Accumulation is in float32.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_layer_norm_backward_rows(
    h, weight, dy, dh, dx, sums, rows, cols, h_stride, dy_stride, dh_stride, eps,
    PIECE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """h, dy, dh [rows, cols], weight[cols] -> dx[rows, cols], sums[programs, 2, cols]; BLOCK >= cols."""
    program = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    scale = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
    weight_sum = tl.zeros([BLOCK], tl.float32)
    bias_sum = tl.zeros([BLOCK], tl.float32)
    for step in range(PIECE):
        row = program * PIECE + step
        inside = (col < cols) & (row < rows)
        values = tl.load(h + row * h_stride + col, mask=inside, other=0.0).to(tl.float32)
        upstream = tl.load(dy + row * dy_stride + col, mask=inside, other=0.0).to(tl.float32)
        direct = tl.load(dh + row * dh_stride + col, mask=inside, other=0.0).to(tl.float32)
        deviation = tl.where(inside, values - tl.sum(values, axis=0) / cols, 0.0)
        inverse = tl.rsqrt(tl.sum(deviation * deviation, axis=0) / cols + eps)
        normal = deviation * inverse
        scaled = upstream * scale
        shift = tl.sum(scaled, axis=0) / cols
        slope = tl.sum(scaled * normal, axis=0) / cols
        result = direct + inverse * (scaled - shift - normal * slope)
        tl.store(dx + row * cols + col, result.to(dx.dtype.element_ty), mask=inside)
        weight_sum += upstream * normal
        bias_sum += upstream
    tl.store(sums + 2 * program * cols + col, weight_sum, mask=col < cols)
    tl.store(sums + (2 * program + 1) * cols + col, bias_sum, mask=col < cols)


@triton.jit
def add_layer_norm_backward_columns(sums, dweight, dbias, pieces, cols, BLOCK: tl.constexpr):
    """sums[pieces, 2, cols] -> dweight, dbias [cols]."""
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    weight_sum = tl.zeros([BLOCK], tl.float32)
    bias_sum = tl.zeros([BLOCK], tl.float32)
    for _ in range(pieces):
        weight_sum += tl.load(sums + col, mask=col < cols, other=0.0)
        bias_sum += tl.load(sums + cols + col, mask=col < cols, other=0.0)
        sums += 2 * cols
    tl.store(dweight + col, weight_sum.to(dweight.dtype.element_ty), mask=col < cols)
    tl.store(dbias + col, bias_sum.to(dbias.dtype.element_ty), mask=col < cols)


def launch(*, h, weight, bias, dy, dh, dx, dweight, dbias, eps, PIECE, BLOCK, num_warps):  # noqa: ARG001
    """h, dy, dh [rows, cols] with any row strides, weight, bias [cols] -> dx as h, dweight, dbias [cols]."""
    rows, cols = h.shape
    if cols == 0:
        return
    pieces = triton.cdiv(rows, PIECE)
    sums = torch.empty((pieces, 2, cols), dtype=torch.float32, device=h.device)
    if rows:
        add_layer_norm_backward_rows[(pieces,)](
            h, weight, dy, dh, dx, sums, rows, cols, h.stride(0), dy.stride(0), dh.stride(0), eps,
            PIECE=PIECE, BLOCK=triton.next_power_of_2(cols), num_warps=num_warps,
        )  # fmt: skip
    add_layer_norm_backward_columns[(triton.cdiv(cols, BLOCK),)](
        sums, dweight, dbias, pieces, cols, BLOCK=BLOCK
    )
