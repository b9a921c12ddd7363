import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        values, indices = flag_gems.sort_stable(x, stable=True, dim=-1, descending=False)
        return values, indices
