import torch
import torch.nn as nn
import torch.nn.functional as F
M, K, N = 16, 32, 48

class Model(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.lin = nn.Linear(k, n)
    def forward(self, x):
        return F.relu(self.lin(x))

def get_inputs():
    return [torch.randn(M, K)]

def get_init_inputs():
    return [K, N]
