import torch
import torch.nn as nn
from fla.ops.utils import mean_pooling


class ModelNew(nn.Module):
    def __init__(self, chunk_size):
        super().__init__()
        self.chunk = chunk_size

    def forward(self, x):
        return mean_pooling(x, self.chunk)
