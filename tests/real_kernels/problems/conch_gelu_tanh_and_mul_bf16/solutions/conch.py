import torch
import torch.nn as nn
from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return gelu_tanh_and_mul(x)
