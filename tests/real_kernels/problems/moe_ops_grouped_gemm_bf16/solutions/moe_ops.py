import torch
import torch.nn as nn
from moe_ops.grouped_gemm_ops import grouped_gemm


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b, ends):
        return grouped_gemm(a, b, ends)
