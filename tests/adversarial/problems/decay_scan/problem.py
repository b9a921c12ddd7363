import torch
import torch.nn as nn

ROWS = 24
TIME = 300


class Model(nn.Module):
    """h[t] = a[t] * h[t-1] + b[t]"""

    def forward(self, a, b):
        h = torch.zeros_like(b[:, 0])
        out = []
        for t in range(b.shape[1]):
            h = a[:, t] * h + b[:, t]
            out.append(h)
        return torch.stack(out, dim=1)


def get_inputs():
    return [torch.sigmoid(torch.randn(ROWS, TIME) + 1.0), torch.randn(ROWS, TIME)]


def get_init_inputs():
    return []
