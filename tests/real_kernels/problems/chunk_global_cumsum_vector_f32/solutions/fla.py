import torch
import torch.nn as nn
from fla.ops.utils import chunk_global_cumsum


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, s):
        return chunk_global_cumsum(s)
