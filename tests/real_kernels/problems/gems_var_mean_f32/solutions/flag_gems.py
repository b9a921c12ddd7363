import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        v, m = flag_gems.var_mean(x, [1], correction=1)
        return v, m
