"""torch.func.vmap over the rows."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.func.vmap(lambda row: row.softmax(0))(x)
