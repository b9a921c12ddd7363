import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        values, indices = flag_gems.topk(x, self.k)
        return values, indices
