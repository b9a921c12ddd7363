"""ReLU."""
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

batch_size = 20
dim = 150

def get_inputs():
    return [torch.randn(batch_size, dim)]

def get_init_inputs():
    return []
