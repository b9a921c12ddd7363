import torch
import torch.nn as nn
from fla.modules.l2norm import l2norm


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return l2norm(x)
