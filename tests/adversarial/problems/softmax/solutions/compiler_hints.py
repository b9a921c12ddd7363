"""Hints to the compiler: alignment, eviction, static asserts, barriers, constant annotations."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def hinted_kernel(x_ptr, out_ptr, n_cols: tl.int32, BLOCK: tl.constexpr, WARPS: tl.constexpr = 4):
    tl.static_assert(BLOCK >= 1)
    row = tl.program_id(axis=0).to(tl.int64)
    offsets = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    mask = offsets < n_cols
    x = tl.load(x_ptr + row * n_cols + offsets, mask, -float("inf"), eviction_policy="evict_first")
    e = tl.math.exp(x - tl.max(x, 0))
    tl.debug_barrier()
    tl.store(out_ptr + row * n_cols + offsets, tl.fdiv(e, tl.sum(e, 0)), mask, cache_modifier=".cs")


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        hinted_kernel[x.shape[0], 1, 1](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
