import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scan_kernel(a_ptr, b_ptr, out_ptr, T, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    t = tl.arange(0, BLOCK)
    mask = t < T
    a = tl.load(a_ptr + row * T + t, mask=mask, other=1.0)
    b = tl.load(b_ptr + row * T + t, mask=mask, other=0.0)
    p = tl.exp(tl.cumsum(tl.log(a), axis=0))
    tl.store(out_ptr + row * T + t, p * tl.cumsum(b / p, axis=0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(b)
        scan_kernel[(b.shape[0],)](a, b, out, b.shape[1], BLOCK=triton.next_power_of_2(b.shape[1]))
        return out
