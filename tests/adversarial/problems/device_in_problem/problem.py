"""A problem that puts its tensors on a device."""

import torch
import torch.nn.functional as F

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.randn(1, device="cuda:0"))
    def forward(self, x): return torch.relu(x) + torch.arange(x.shape[1], device="cuda")
ROWS = 64
def get_inputs(): return [torch.randn(ROWS, 128, device="cuda"), ][:1]
def get_init_inputs(): return []
