"""Weighted sum of table rows per bag."""
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)

    def forward(self, indices, weights):
        return (self.table(indices) * weights.unsqueeze(-1)).sum(dim=1)

batch_size = 10
bag = 13
vocabulary = 300
dim = 40

def get_inputs():
    return [torch.randint(0, vocabulary, (batch_size, bag)), torch.rand(batch_size, bag)]

def get_init_inputs():
    return [vocabulary, dim]
