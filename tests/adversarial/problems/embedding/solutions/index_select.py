"""torch.index_select."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)

    def forward(self, tokens):
        rows = torch.index_select(self.table.weight, 0, tokens.reshape(-1))
        return rows.view(*tokens.shape, -1)
