import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, c, a, b):
        return flag_gems.addmm(c, a, b, beta=0.5, alpha=2.0)
