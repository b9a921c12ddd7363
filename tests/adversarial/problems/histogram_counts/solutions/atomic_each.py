import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def hist_kernel(idx_ptr, hist_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    idx = tl.load(idx_ptr + offs, mask=mask, other=0)
    tl.atomic_add(hist_ptr + idx, 1, mask=mask, sem="relaxed")


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, idx):
        hist = torch.zeros(self.bins, dtype=torch.int32, device=idx.device)
        n = idx.numel()
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
        hist_kernel[grid](idx, hist, n, BLOCK=1024)
        return hist
