import torch
import torch.nn as nn
from triton_sigmoid import sigmoid_attention


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v):
        return sigmoid_attention(q, k, v, is_causal=True)
