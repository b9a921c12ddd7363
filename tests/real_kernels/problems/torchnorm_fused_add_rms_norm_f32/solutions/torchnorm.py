import torch
import torch.nn as nn
from torchnorm import FusedAddRMSNorm


class ModelNew(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.norm = FusedAddRMSNorm(hidden_size)

    def forward(self, x, r):
        return self.norm(x, r)
