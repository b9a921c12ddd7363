import torch
import torch.nn as nn

BH = 2
TIME = 60
DIM = 16


class Model(nn.Module):
    """S += k[t] (beta[t] (v[t] - S^T k[t]))^T,  o[t] = S^T q[t]"""

    def forward(self, q, k, v, beta):
        k = torch.nn.functional.normalize(k, dim=-1)
        S = torch.zeros(q.shape[0], q.shape[2], v.shape[2], dtype=q.dtype, device=q.device)
        out = []
        for t in range(q.shape[1]):
            err = v[:, t] - (k[:, t, :, None] * S).sum(1)
            S = S + k[:, t, :, None] * (beta[:, t, None] * err)[:, None, :]
            out.append((q[:, t, :, None] * S).sum(1))
        return torch.stack(out, dim=1)


def get_inputs():
    r = lambda: torch.randn(BH, TIME, DIM)
    return [r(), r(), r(), torch.rand(BH, TIME)]


def get_init_inputs():
    return []
