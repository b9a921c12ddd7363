import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def bagged(idx, wts, table, out, BAG, D, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    d = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for j in range(BAG):
        i = tl.load(idx + r * BAG + j)
        acc += tl.load(wts + r * BAG + j) * tl.load(table + i * D + d, mask=d < D, other=0.0)
    tl.store(out + r * D + d, acc, mask=d < D)

class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)

    def forward(self, indices, weights):
        indices, weights = indices.contiguous(), weights.contiguous()
        R, BAG = indices.shape
        D = self.table.weight.shape[1]
        out = torch.empty(R, D, device=weights.device)
        bagged[(R,)](indices, weights, self.table.weight, out, BAG, D, BLOCK=triton.next_power_of_2(D))
        return out
