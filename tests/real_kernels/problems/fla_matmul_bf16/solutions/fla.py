import torch
import torch.nn as nn
from fla.ops.utils import matmul


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return matmul(a, b)
