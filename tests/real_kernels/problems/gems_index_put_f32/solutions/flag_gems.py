import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, i, j, v):
        return flag_gems.index_put(x, (i, j), v, True)
