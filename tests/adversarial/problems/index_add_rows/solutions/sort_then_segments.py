import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def segment_kernel(src_ptr, order_ptr, start_ptr, out_ptr, dim, BLOCK: tl.constexpr):
    node = tl.program_id(0)
    lo = tl.load(start_ptr + node)
    hi = tl.load(start_ptr + node + 1)
    offs = tl.arange(0, BLOCK)
    mask = offs < dim
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(lo, hi):
        e = tl.load(order_ptr + i)
        acc += tl.load(src_ptr + e * dim + offs, mask=mask, other=0.0)
    tl.store(out_ptr + node * dim + offs, acc, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes

    def forward(self, src, idx):
        src = src.contiguous()
        keys, order = torch.sort(idx)
        bounds = torch.arange(self.nodes + 1, device=idx.device, dtype=idx.dtype)
        start = torch.searchsorted(keys, bounds)
        out = torch.empty(self.nodes, src.shape[1], dtype=src.dtype, device=src.device)
        segment_kernel[(self.nodes,)](src, order, start, out, src.shape[1],
                                      BLOCK=triton.next_power_of_2(src.shape[1]))
        return out
