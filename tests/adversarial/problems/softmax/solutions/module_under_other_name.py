"""An nn.Softmax module hidden in a subclass."""

import torch.nn as nn


class RowNormalizer(nn.Softmax):
    pass


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.normalize = RowNormalizer(dim=-1)

    def forward(self, x):
        return self.normalize(x)
