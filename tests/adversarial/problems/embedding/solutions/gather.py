"""One program per position copies its row."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gather_kernel(tokens_ptr, table_ptr, out_ptr, dim, BLOCK: tl.constexpr):
    position = tl.program_id(0)
    token = tl.load(tokens_ptr + position)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < dim
    tl.store(
        out_ptr + position * dim + offsets, tl.load(table_ptr + token * dim + offsets, mask=mask), mask=mask
    )


class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)

    def forward(self, tokens):
        tokens = tokens.contiguous()
        weight = self.table.weight
        dim = weight.shape[1]
        out = torch.empty((*tokens.shape, dim), device=weight.device, dtype=weight.dtype)
        gather_kernel[(tokens.numel(),)](tokens, weight, out, dim, BLOCK=triton.next_power_of_2(dim))
        return out
