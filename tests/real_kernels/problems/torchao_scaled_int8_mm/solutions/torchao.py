import torch
import torch.nn as nn
from torchao.prototype.quantized_training.int8_mm import scaled_int8_mm


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b, row, col):
        return scaled_int8_mm(a, b, row, col)
