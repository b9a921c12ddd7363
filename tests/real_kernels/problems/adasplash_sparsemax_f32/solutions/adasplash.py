import torch
import torch.nn as nn
from adasplash import triton_sparsemax


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return triton_sparsemax(x)
