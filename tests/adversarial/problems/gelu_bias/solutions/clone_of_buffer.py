import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def gelu_kernel(x_ptr, b_ptr, out_ptr, n, cols, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    b = tl.load(b_ptr + offs % cols, mask=mask, other=0.0)
    tl.store(out_ptr + offs, gelu(x + b), mask=mask)


def launch(x, bias, out):
    n = x.numel()
    gelu_kernel[(triton.cdiv(n, 2048),)](x, bias, out, n, x.shape[-1], BLOCK=2048)
    return out


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(cols))
        self.buf = None

    def forward(self, x):
        x = x.contiguous()
        if self.buf is None or self.buf.shape != x.shape:
            self.buf = torch.empty_like(x)
        return launch(x, self.bias, self.buf).clone()
