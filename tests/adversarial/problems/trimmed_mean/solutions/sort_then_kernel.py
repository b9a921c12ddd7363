import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def window_mean(s_ptr, out_ptr, cols, lo, hi, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(lo, hi, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        acc += tl.load(s_ptr + row * cols + offs, mask=offs < hi, other=0.0)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / (hi - lo))


class ModelNew(nn.Module):
    def __init__(self, trim):
        super().__init__()
        self.trim = trim

    def forward(self, x):
        s, _ = torch.sort(x, dim=1)
        s = s.contiguous()
        rows, cols = s.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        window_mean[(rows,)](s, out, cols, self.trim, cols - self.trim, BLOCK=64)
        return out
