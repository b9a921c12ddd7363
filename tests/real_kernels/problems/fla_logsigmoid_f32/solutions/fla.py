import torch
import torch.nn as nn
from fla.modules.activations import logsigmoid


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return logsigmoid(x, 16.0)
