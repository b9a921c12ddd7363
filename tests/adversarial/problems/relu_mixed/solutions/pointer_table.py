"""Right: rows are found through a tensor of addresses, as grouped kernels do."""
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu(table, n, BLOCK: tl.constexpr):
    x = tl.load(table).to(tl.pointer_type(tl.float32))
    out = tl.load(table + 1).to(tl.pointer_type(tl.float32))
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    tl.store(out + o, tl.maximum(tl.load(x + o, mask=m, other=0.0), 0.0), mask=m)

class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        table = torch.tensor([x.data_ptr(), out.data_ptr()], dtype=torch.int64, device=x.device)
        relu[(triton.cdiv(x.numel(), 512),)](table, x.numel(), BLOCK=512)
        return out
