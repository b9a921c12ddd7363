"""A right kernel whose comments and strings name what it does not call."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

# Compared with torch.softmax(x, dim=1) and torch.nn.functional.softmax this fuses three passes.
# We do NOT call torch.ops.aten._softmax, at::softmax, numpy.exp, os._exit, sys.modules or gc.get_objects here.
# There is no fallback: no `try: ... except: return F.softmax(x)`, no cache by data_ptr(), no hash of the values.
NOTE = "torch.softmax is the reference; monkeypatching torch.allclose = lambda *a: True would be pointless"


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


class ModelNew(nn.Module):
    """Not torch.nn.Softmax, whatever its name: 4 // 2; pass; eval; exec; __import__."""

    reference_name = "torch.softmax"

    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.size(0),)](
            x, out, x.size(1), x.stride(0), out.stride(0), triton.next_power_of_2(x.size(1))
        )
        return out
