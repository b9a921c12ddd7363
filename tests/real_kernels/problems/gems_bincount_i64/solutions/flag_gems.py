import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, x):
        return flag_gems.bincount(x, minlength=self.bins)
