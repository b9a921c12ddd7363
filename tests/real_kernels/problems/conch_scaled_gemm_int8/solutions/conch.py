import torch
import torch.nn as nn
from conch.ops.quantization.gemm import scaled_gemm


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b, sa, sb):
        return scaled_gemm(a, b, sa, sb, torch.bfloat16)
