import torch
import torch.nn as nn
from fla.ops.utils import softmax_fwd


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return softmax_fwd(x)
