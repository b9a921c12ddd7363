import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bin_kernel(idx_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < n
        idx = tl.load(idx_ptr + offs, mask=mask, other=-1)
        w = tl.load(w_ptr + offs, mask=mask, other=0.0)
        acc += tl.where(idx == b, w, 0.0)
    tl.store(out_ptr + b, tl.sum(acc, axis=0))


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, idx, w):
        out = torch.empty(self.bins, dtype=w.dtype, device=w.device)
        bin_kernel[(self.bins,)](idx, w, out, idx.numel(), BLOCK=1024)
        return out
