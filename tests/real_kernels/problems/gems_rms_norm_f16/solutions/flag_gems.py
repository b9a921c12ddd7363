import torch
import torch.nn as nn
import flag_gems


class ModelNew(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=torch.float16))

    def forward(self, x):
        return flag_gems.rms_norm(x, [x.shape[-1]], self.weight)
