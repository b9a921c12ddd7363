"""The weight gets no gradient."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, w_ptr, y_ptr, r_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + row * n + offsets, mask=mask, other=0.0)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    r = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(r_ptr + row, r)
    tl.store(y_ptr + row * n + offsets, x * r * w, mask=mask)


@triton.jit
def backward_kernel(x_ptr, w_ptr, r_ptr, dy_ptr, dx_ptr, dw_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + row * n + offsets, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * n + offsets, mask=mask, other=0.0)
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    r = tl.load(r_ptr + row)
    normed = x * r
    g = dy * w
    dx = r * (g - normed * (tl.sum(g * normed, axis=0) / n))
    tl.store(dx_ptr + row * n + offsets, dx, mask=mask)
    tl.atomic_add(dw_ptr + offsets, dy * normed, mask=mask)


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        x = x.contiguous()
        rows, n = x.shape
        y = torch.empty_like(x)
        r = torch.empty(rows, device=x.device, dtype=torch.float32)
        forward_kernel[(rows,)](x, weight, y, r, n, eps, BLOCK=triton.next_power_of_2(n))
        ctx.save_for_backward(x, weight, r)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, r = ctx.saved_tensors
        rows, n = x.shape
        dx = torch.empty_like(x)
        dw = torch.zeros_like(weight)
        backward_kernel[(rows,)](x, weight, r, dy.contiguous(), dx, dw, n, BLOCK=triton.next_power_of_2(n))
        return dx, None, None


class ModelNew(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return RMSNorm.apply(x, self.weight, self.eps)
