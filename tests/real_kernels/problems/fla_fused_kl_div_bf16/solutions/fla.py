import torch
import torch.nn as nn
from fla.modules import FusedKLDivLoss


class ModelNew(nn.Module):
    def __init__(self, vocab_size, hidden_size):
        super().__init__()
        self.loss = FusedKLDivLoss()
        self.weight = nn.Parameter((torch.randn(vocab_size, hidden_size) * 0.1).to(torch.bfloat16))
        self.target_weight = nn.Parameter((torch.randn(vocab_size, hidden_size) * 0.1).to(torch.bfloat16))

    def forward(self, x, target_x):
        return self.loss(x, target_x, self.weight, self.target_weight.detach())
