"""Returns a transposed view of the input."""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2)
