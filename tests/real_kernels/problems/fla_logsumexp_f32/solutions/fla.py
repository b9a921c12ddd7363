import torch
import torch.nn as nn
from fla.ops.utils import logsumexp_fwd


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return logsumexp_fwd(x)
