import torch
import torch.nn as nn
from fla.modules.convolution import causal_conv1d


class ModelNew(nn.Module):
    def __init__(self, hidden_size, kernel_size):
        super().__init__()
        self.weight = nn.Parameter((torch.randn(hidden_size, kernel_size) * 0.5).to(torch.bfloat16))

    def forward(self, x):
        return causal_conv1d(x, weight=self.weight, activation="silu")[0]
