import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        values, inverse, _ = flag_gems._unique2(x, sorted=True, return_inverse=True)
        return values, inverse
