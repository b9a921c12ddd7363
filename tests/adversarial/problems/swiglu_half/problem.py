"""SwiGLU in half precision: silu(x W1^T) * (x W2^T)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = nn.Linear(dim, hidden, bias=False, dtype=torch.float16)
        self.up = nn.Linear(dim, hidden, bias=False, dtype=torch.float16)

    def forward(self, x):
        return F.silu(self.gate(x)) * self.up(x)

batch_size = 24
dim = 200
hidden = 72

def get_inputs():
    return [torch.randn(batch_size, dim, dtype=torch.float16)]

def get_init_inputs():
    return [dim, hidden]
