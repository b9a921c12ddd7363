"""linear_cross_entropy"""

import torch
import torch.nn as nn
import torch.nn.functional as F

tokens = 128
hidden = 128
vocab = 1024

class Model(nn.Module):
    def __init__(self, vocab_size, hidden_size):
        super().__init__()
        self.weight = nn.Parameter((torch.randn(vocab_size, hidden_size) * 0.1).to(torch.bfloat16))

    def forward(self, e, target):
        logits = e.float() @ self.weight.float().t()
        return F.cross_entropy(logits, target)


def get_inputs():
    return [torch.randn(tokens, hidden, dtype=torch.bfloat16), torch.randint(0, vocab, (tokens,))]


def get_init_inputs():
    return [vocab, hidden]
