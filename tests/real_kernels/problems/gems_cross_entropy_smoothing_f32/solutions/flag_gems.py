import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, target, weight):
        return flag_gems.cross_entropy_loss(x, target, weight=weight, label_smoothing=0.1)
