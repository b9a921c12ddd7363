import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.bias = nn.Parameter(torch.zeros(hidden_size))

    def forward(self, x):
        with flag_gems.use_gems():
            y = nn.functional.layer_norm(x, (x.shape[-1],), self.weight, self.bias)
            return nn.functional.gelu(y)
