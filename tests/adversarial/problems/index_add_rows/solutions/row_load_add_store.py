import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def index_add_kernel(src_ptr, idx_ptr, out_ptr, dim, BLOCK: tl.constexpr):
    e = tl.program_id(0)
    node = tl.load(idx_ptr + e)
    offs = tl.arange(0, BLOCK)
    mask = offs < dim
    v = tl.load(src_ptr + e * dim + offs, mask=mask)
    acc = tl.load(out_ptr + node * dim + offs, mask=mask)
    tl.store(out_ptr + node * dim + offs, acc + v, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, nodes):
        super().__init__()
        self.nodes = nodes

    def forward(self, src, idx):
        src = src.contiguous()
        out = torch.zeros(self.nodes, src.shape[1], dtype=src.dtype, device=src.device)
        index_add_kernel[(src.shape[0],)](src, idx, out, src.shape[1],
                                          BLOCK=triton.next_power_of_2(src.shape[1]))
        return out
