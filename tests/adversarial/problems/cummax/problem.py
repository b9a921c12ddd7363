"""Running maximum along rows and where it was."""
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.cummax(x, dim=1)

batch_size = 9
length = 150

def get_inputs():
    return [torch.randn(batch_size, length)]

def get_init_inputs():
    return []
