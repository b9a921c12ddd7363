"""Reads an environment variable for its block, sets a harmless one, and sets TF32 flags."""

import os
import warnings

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, x_stride, out_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n_cols
    x = tl.load(x_ptr + row * x_stride + offsets, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    y = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * out_stride + offsets, y, mask=mask)


warnings.filterwarnings("ignore")
os.environ.setdefault("CUDA_LAUNCH_BLOCKING", "0")
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
WARPS = int(os.environ.get("SOFTMAX_WARPS", "4"))


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        softmax_kernel[(x.shape[0],)](
            x, out, x.shape[1], x.stride(0), out.stride(0), BLOCK=block, num_warps=WARPS
        )
        return out
