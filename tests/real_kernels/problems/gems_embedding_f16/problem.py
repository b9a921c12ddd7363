"""embedding"""

import torch
import torch.nn as nn
import torch.nn.functional as F

vocab = 200
hidden = 128
batch = 4
seq = 16

class Model(nn.Module):
    def __init__(self, vocab_size, hidden_size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, hidden_size).to(torch.float16))

    def forward(self, ids):
        return F.embedding(ids, self.weight)


def get_inputs():
    return [torch.randint(0, vocab, (batch, seq))]


def get_init_inputs():
    return [vocab, hidden]
