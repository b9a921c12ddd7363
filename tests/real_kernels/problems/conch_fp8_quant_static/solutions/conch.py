import torch
import torch.nn as nn
from conch.ops.quantization.fp8 import scaled_fp8_quant


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, s):
        y, _ = scaled_fp8_quant(x, s)
        return y, s.clone()
