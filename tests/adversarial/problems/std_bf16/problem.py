"""Standard deviation over the middle axis, bfloat16."""
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.std(x, dim=1)

batch_size = 5
steps = 45
channels = 26

def get_inputs():
    return [torch.randn(batch_size, steps, channels, dtype=torch.bfloat16) + 2]

def get_init_inputs():
    return []
