import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, out_ptr, rows, dim, BM: tl.constexpr, BD: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    x = tl.load(x_ptr + r[:, None] * dim + d[None, :], mask=(r < rows)[:, None] & (d < dim)[None, :], other=0.0)
    tl.store(out_ptr + r, tl.sqrt(tl.sum(x * x, axis=1)), mask=r < rows)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, dim = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        norm_kernel[(triton.cdiv(rows, 32),)](x, out, rows, dim, BM=32, BD=triton.next_power_of_2(dim))
        return out
