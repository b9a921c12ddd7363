import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.cumsum(x, dim=self.dim)

# Define input dimensions and parameters
batch_size = 128
input_length = 4000
dim = 1

def get_inputs():
    return [torch.randn(batch_size, input_length)]

def get_init_inputs():
    return [dim]
