import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, c, a, b):
        return flag_gems.baddbmm(c, a, b, 0.5, 1.5)
