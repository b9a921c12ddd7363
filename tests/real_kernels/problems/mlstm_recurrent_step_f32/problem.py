"""mlstm_recurrent_step"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 2
heads = 2
dim = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v, i, f, c, n, m):
        f_log = F.logsigmoid(f)
        m_new = torch.maximum(f_log + m, i)
        fa, ia = torch.exp(f_log + m - m_new), torch.exp(i - m_new)
        c_new = fa[..., None] * c + ia[..., None] * k[..., :, None] * v[..., None, :]
        n_new = fa * n + ia * k
        q = q * q.shape[-1] ** -0.5
        den = torch.maximum((q * n_new).sum(-1, keepdim=True).abs(), torch.exp(-m_new)) + 1e-6
        h = (q[..., None] * c_new).sum(-2) / den
        return h, c_new, n_new, m_new


def get_inputs():
    return [torch.randn(batch, heads, dim), torch.randn(batch, heads, dim), torch.randn(batch, heads, dim), torch.randn(batch, heads, 1), torch.randn(batch, heads, 1) + 3, torch.randn(batch, heads, dim, dim), torch.randn(batch, heads, dim), torch.rand(batch, heads, 1)]


def get_init_inputs():
    return []
