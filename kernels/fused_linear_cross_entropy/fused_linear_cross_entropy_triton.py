"""Cross entropy of a linear layer in Triton, whose logits stay in registers.

1. `linear_parts`: a program multiplies BLOCK_M rows by CHUNK classes, BLOCK_N of them at a time (`tl.dot`).
   Of the logits it keeps each row's maximum, the sum of exponentials relative to it, and the target's logit
   (Hsu et al. 2024, arXiv:2410.10989, in chunks of rows; Wijmans et al. 2024, arXiv:2411.09009, in tiles of
   both).
2. `merge_parts` merges what the chunks of a row left, in order, so the result does not depend on scheduling.

A larger CHUNK means fewer parts to merge and fewer programs. num_stages > 1: the loads of later steps are in
flight while this one multiplies. float32 is multiplied in full (`ieee`). Accumulation is in float32.
"""

import torch
import triton
import triton.language as tl

LOWEST = tl.constexpr(-3.4028234663852886e38)
"""Finite, so that a row that has seen nothing but -infinity scales by exp(0), not by exp(NaN)."""


@triton.jit
def linear_parts(
    hidden, weight, target, parts, rows, classes, width, hidden_stride, weight_stride,
    CHUNK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """hidden[rows, width], weight[classes, width], target[rows] -> parts[chunks, 3, rows]."""
    m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    chunk = tl.program_id(1).to(tl.int64)
    k = tl.arange(0, BLOCK_K)
    wanted = tl.load(target + m, mask=m < rows, other=0)
    largest = tl.full([BLOCK_M], LOWEST, tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    score = tl.zeros([BLOCK_M], tl.float32)
    for start in range(0, CHUNK, BLOCK_N):
        n = chunk * CHUNK + start + tl.arange(0, BLOCK_N)
        logits = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for step in tl.range(0, width, BLOCK_K, num_stages=STAGES):
            inside = (step + k < width)[None, :]
            left = tl.load(
                hidden + m[:, None] * hidden_stride + step + k[None, :],
                mask=(m < rows)[:, None] & inside,
                other=0.0,
            )
            right = tl.load(
                weight + n[:, None] * weight_stride + step + k[None, :],
                mask=(n < classes)[:, None] & inside,
                other=0.0,
            )
            logits = tl.dot(left, tl.trans(right), logits, input_precision="ieee")
        score += tl.sum(tl.where(n[None, :] == wanted[:, None], logits, 0.0), axis=1)
        logits = tl.where((n < classes)[None, :], logits, float("-inf"))
        top = tl.maximum(largest, tl.max(logits, axis=1))
        total = total * tl.exp(largest - top) + tl.sum(tl.exp(logits - top[:, None]), axis=1)
        largest = top
    place = parts + 3 * chunk * rows + m
    tl.store(place, largest, mask=m < rows)
    tl.store(place + rows, total, mask=m < rows)
    tl.store(place + 2 * rows, score, mask=m < rows)


@triton.jit
def merge_parts(parts, loss, rows, chunks, BLOCK: tl.constexpr):
    """parts[chunks, 3, rows] -> loss[rows]."""
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = row < rows
    largest = tl.full([BLOCK], LOWEST, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    score = tl.zeros([BLOCK], tl.float32)
    for _ in range(chunks):
        maximum = tl.load(parts + row, mask=mask, other=0.0)
        top = tl.maximum(largest, maximum)
        part = tl.load(parts + rows + row, mask=mask, other=0.0)
        total = total * tl.exp(largest - top) + part * tl.exp(maximum - top)
        score += tl.load(parts + 2 * rows + row, mask=mask, other=0.0)
        largest = top
        parts += 3 * rows
    result = tl.log(total) + (largest - score)
    tl.store(loss + row, result.to(loss.dtype.element_ty), mask=mask)


def launch(*, hidden, weight, target, loss, CHUNK, BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages):
    """hidden[rows, width], weight[classes, width] with any row strides, target[rows] -> loss[rows]."""
    rows, width = hidden.shape
    classes = weight.shape[0]
    if not rows:
        return
    chunks = triton.cdiv(classes, CHUNK)
    parts = torch.empty((chunks, 3, rows), dtype=torch.float32, device=hidden.device)
    linear_parts[(triton.cdiv(rows, BLOCK_M), chunks)](
        hidden, weight, target, parts, rows, classes, width, hidden.stride(0), weight.stride(0),
        CHUNK=CHUNK, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K,
        STAGES=num_stages, num_warps=num_warps,
    )  # fmt: skip
    merge_parts[(triton.cdiv(rows, 128),)](parts, loss, rows, chunks, BLOCK=128)
