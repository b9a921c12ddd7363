"""Scratch buffers are kept between calls in a dictionary by shape; results are always new."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, max_ptr, sum_ptr, n_cols, chunks, CHUNK: tl.constexpr):
    row = tl.program_id(0)
    chunk = tl.program_id(1)
    offsets = chunk * CHUNK + tl.arange(0, CHUNK)
    x = tl.load(x_ptr + row * n_cols + offsets, mask=offsets < n_cols, other=-float("inf"))
    m = tl.max(x, axis=0)
    tl.store(max_ptr + row * chunks + chunk, m)
    tl.store(sum_ptr + row * chunks + chunk, tl.sum(tl.exp(x - m), axis=0))


@triton.jit
def combine_kernel(max_ptr, sum_ptr, chunks, CHUNKS: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, CHUNKS)
    mask = offsets < chunks
    m = tl.load(max_ptr + row * chunks + offsets, mask=mask, other=-float("inf"))
    s = tl.load(sum_ptr + row * chunks + offsets, mask=mask, other=0.0)
    total = tl.max(m, axis=0)
    s = tl.sum(s * tl.exp(m - total), axis=0)
    tl.store(max_ptr + row * chunks, total)
    tl.store(sum_ptr + row * chunks, s)


@triton.jit
def write_kernel(x_ptr, max_ptr, sum_ptr, out_ptr, n_cols, chunks, CHUNK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.program_id(1) * CHUNK + tl.arange(0, CHUNK)
    m = tl.load(max_ptr + row * chunks)
    s = tl.load(sum_ptr + row * chunks)
    x = tl.load(x_ptr + row * n_cols + offsets, mask=offsets < n_cols, other=0.0)
    tl.store(out_ptr + row * n_cols + offsets, tl.exp(x - m) / s, mask=offsets < n_cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.workspaces = {}

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        chunks = triton.cdiv(cols, 256)
        key = (rows, cols, x.device)
        if key not in self.workspaces:
            self.workspaces[key] = (x.new_empty(rows, chunks), x.new_empty(rows, chunks))
        maxima, sums = self.workspaces[key]
        out = torch.empty_like(x)
        partial_kernel[(rows, chunks)](x, maxima, sums, cols, chunks, CHUNK=256)
        combine_kernel[(rows,)](maxima, sums, chunks, CHUNKS=triton.next_power_of_2(chunks))
        write_kernel[(rows, chunks)](x, maxima, sums, out, cols, chunks, CHUNK=256)
        return out
