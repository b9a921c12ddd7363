"""blockwise_fp8_gemm"""

import torch
import torch.nn as nn

m = 64
n = 128
k = 256

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, a_s, b, b_s):
        a = a.float() * a_s.repeat_interleave(128, 1)
        b = b.float() * b_s.repeat_interleave(128, 0).repeat_interleave(128, 1)
        return (a @ b.t()).to(torch.bfloat16)


def get_inputs():
    return [(torch.randn(m, k) * 50).to(torch.float8_e4m3fn), torch.rand(m, k // 128) * 0.02, (torch.randn(n, k) * 50).to(torch.float8_e4m3fn), torch.rand(n // 128, k // 128) * 0.02]


def get_init_inputs():
    return []
