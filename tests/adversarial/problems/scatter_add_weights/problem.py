import torch
import torch.nn as nn

N = 6000
BINS = 50


class Model(nn.Module):
    """Weighted histogram: out[idx[i]] += w[i]."""

    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, idx, w):
        return torch.zeros(self.bins, dtype=w.dtype, device=w.device).scatter_add(0, idx, w)


def get_inputs():
    return [torch.randint(0, BINS, (N,)), torch.rand(N)]


def get_init_inputs():
    return [BINS]


def get_input_groups():
    return [
        [torch.zeros(N, dtype=torch.int64), torch.full((N,), 0.1)],
        [torch.full((N,), BINS - 1), torch.full((N,), 1.0 / 3)],
        [torch.randint(0, BINS, (N,)), torch.full((N,), 0.1)],
    ]
