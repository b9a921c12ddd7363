import torch
import torch.nn as nn
from flashnn import GemmA8W8


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gemm = GemmA8W8()

    def forward(self, a, b, row, col):
        return self.gemm(a, b, row, col)
