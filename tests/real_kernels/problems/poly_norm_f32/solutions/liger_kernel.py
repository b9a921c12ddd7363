import torch
import torch.nn as nn
from liger_kernel.transformers.functional import liger_poly_norm


class ModelNew(nn.Module):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(3) / 3)
        self.bias = nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return liger_poly_norm(x, self.weight, self.bias, self.eps)
