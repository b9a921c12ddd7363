import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, v, g):
        return flag_gems.weight_norm(v, g, 0)
