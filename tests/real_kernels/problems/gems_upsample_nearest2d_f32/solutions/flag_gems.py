import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return flag_gems.upsample_nearest2d(x, [2 * x.shape[2], 2 * x.shape[3]])
