import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, index, src):
        return flag_gems.index_add(x, 0, index, src, alpha=0.5)
