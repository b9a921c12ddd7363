import torch
import torch.nn as nn

N = 20000
BINS = 64


class Model(nn.Module):
    """Counts of each bin index."""

    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, idx):
        return torch.bincount(idx.long(), minlength=self.bins).to(torch.int32)


def get_inputs():
    return [torch.randint(0, BINS, (N,), dtype=torch.int32)]


def get_init_inputs():
    return [BINS]


def get_input_groups():
    return [
        [torch.zeros(N, dtype=torch.int32)],
        [torch.full((N,), BINS - 1, dtype=torch.int32)],
        [torch.randint(0, 2, (4097,), dtype=torch.int32)],
    ]
