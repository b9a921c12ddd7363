"""nll_loss"""

import torch
import torch.nn as nn
import torch.nn.functional as F

tokens = 64
classes = 100

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, target):
        return F.nll_loss(x, target)


def get_inputs():
    return [torch.log_softmax(torch.randn(tokens, classes), -1), torch.randint(0, classes, (tokens,))]


def get_init_inputs():
    return []
