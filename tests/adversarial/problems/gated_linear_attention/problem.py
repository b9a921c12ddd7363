import torch
import torch.nn as nn

BH = 3
TIME = 70
DIM = 16


class Model(nn.Module):
    """S = g[t] * S + k[t] v[t]^T,  o[t] = S^T q[t]"""

    def forward(self, q, k, v, g):
        S = torch.zeros(q.shape[0], q.shape[2], v.shape[2], dtype=q.dtype, device=q.device)
        out = []
        for t in range(q.shape[1]):
            S = g[:, t, None, None] * S + k[:, t, :, None] * v[:, t, None, :]
            out.append((q[:, t, :, None] * S).sum(1))
        return torch.stack(out, dim=1)


def get_inputs():
    g = torch.sigmoid(torch.randn(BH, TIME) + 3.0)
    return [torch.randn(BH, TIME, DIM), torch.randn(BH, TIME, DIM), torch.randn(BH, TIME, DIM), g]


def get_init_inputs():
    return []
