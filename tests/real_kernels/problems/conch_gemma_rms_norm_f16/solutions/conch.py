import torch
import torch.nn as nn
from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm


class ModelNew(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(hidden_size, dtype=torch.float16))

    def forward(self, x):
        return gemma_rms_norm(x.clone(), self.weight, self.eps)
