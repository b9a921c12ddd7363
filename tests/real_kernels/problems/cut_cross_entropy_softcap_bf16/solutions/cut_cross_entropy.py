import torch
import torch.nn as nn
from cut_cross_entropy import linear_cross_entropy


class ModelNew(nn.Module):
    def __init__(self, vocab_size, hidden_size):
        super().__init__()
        self.weight = nn.Parameter((torch.randn(vocab_size, hidden_size) * 0.1).to(torch.bfloat16))

    def forward(self, e, target):
        return linear_cross_entropy(e, self.weight, target, softcap=20.0)
