import torch
import torch.nn as nn
from conch.ops.quantization.int8 import scaled_int8_quant


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, s):
        return scaled_int8_quant(x, s)[0]
