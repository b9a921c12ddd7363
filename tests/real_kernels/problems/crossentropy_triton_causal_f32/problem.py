"""causal_lm_loss"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
seq = 32
vocab = 1024

class Model(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()

    def forward(self, logits, labels):
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def get_inputs():
    return [torch.randn(batch, seq, vocab), torch.randint(0, vocab, (batch, seq))]


def get_init_inputs():
    return [vocab]
