import torch
import torch.nn as nn
from torchnorm import LayerNorm


class ModelNew(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.norm = LayerNorm(hidden_size)

    def forward(self, x):
        return self.norm(x)
