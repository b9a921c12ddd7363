"""grouped_gemm"""

import torch
import torch.nn as nn

tokens = 64
n = 64
k = 128
experts = 4

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b, ends):
        e = ends.tolist()
        parts = [a[s:t] @ w.t() for s, t, w in zip([0] + e[:-1], e, b)]
        return torch.cat(parts)


def get_inputs():
    cuts = torch.sort(torch.randint(0, tokens + 1, (experts - 1,))).values
    ends = torch.cat((cuts, torch.tensor([tokens]))).to(torch.int32)
    return [torch.randn(tokens, k, dtype=torch.bfloat16), torch.randn(experts, n, k, dtype=torch.bfloat16), ends]


def get_init_inputs():
    return []
