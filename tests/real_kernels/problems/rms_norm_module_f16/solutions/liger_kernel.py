import torch
import torch.nn as nn
from liger_kernel.transformers import LigerRMSNorm


class ModelNew(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.norm = LigerRMSNorm(hidden_size, eps=eps).to(torch.float16)
        self.weight = self.norm.weight

    def forward(self, x):
        return self.norm(x)
