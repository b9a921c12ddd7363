import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        values, indices = flag_gems.max_pool2d_with_indices(x, 3, 2, 1)
        return values, indices
