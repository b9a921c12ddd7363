"""fused_ce_tvd"""

import torch
import torch.nn as nn
import torch.nn.functional as F

tokens = 32
vocab = 1024

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, student, teacher, target):
        p, q = torch.softmax(student, dim=-1), torch.softmax(teacher, dim=-1)
        return F.cross_entropy(student, target, reduction="none"), 0.5 * (p - q).abs().sum(-1)


def get_inputs():
    return [torch.randn(tokens, vocab), torch.randn(tokens, vocab), torch.randint(0, vocab, (tokens,))]


def get_init_inputs():
    return []
