import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.heuristics({
    "EVEN": lambda args: args["cols"] % args["BLOCK"] == 0,
    "num_warps": lambda args: 4 if args["BLOCK"] <= 512 else 8,
})
@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = -float("inf")
    s = 0.0
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        if EVEN:
            x = tl.load(x_ptr + row * cols + offs)
        else:
            x = tl.load(x_ptr + row * cols + offs, mask=offs < cols, other=-float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + offs, mask=offs < cols, other=0.0)
        tl.store(out_ptr + row * cols + offs, tl.exp(x - m) / s, mask=offs < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rows, cols = x.shape
        softmax_kernel[(rows,)](x, out, cols, BLOCK=256)
        return out
