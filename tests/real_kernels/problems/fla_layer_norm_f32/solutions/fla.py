import torch
import torch.nn as nn
from fla.modules.layernorm import layer_norm


class ModelNew(nn.Module):
    def __init__(self, hidden_size, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=torch.float32))
        self.bias = nn.Parameter(torch.zeros(hidden_size))

    def forward(self, x):
        return layer_norm(x, self.weight, self.bias, eps=self.eps)
