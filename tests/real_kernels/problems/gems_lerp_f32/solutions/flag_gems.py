import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return flag_gems.lerp_scalar(x, y, 0.3)
