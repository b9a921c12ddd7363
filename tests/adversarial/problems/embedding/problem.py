"""Rows of a table by their numbers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.table = nn.Embedding(vocabulary, dim)

    def forward(self, tokens):
        return self.table(tokens)


batch_size = 6
length = 20
vocabulary = 400
dim = 48


def get_inputs():
    return [torch.randint(0, vocabulary, (batch_size, length))]


def get_init_inputs():
    return [vocabulary, dim]
