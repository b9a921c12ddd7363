import torch
import torch.nn as nn
from flashnn import FlashAttention


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = FlashAttention()

    def forward(self, q, k, v):
        return self.attention(q, k, v, True)
