"""mlstm_parallel"""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch = 1
heads = 2
seq = 128
dim = 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v, i, f):
        s = q.shape[2]
        f_log = F.logsigmoid(f)
        causal = torch.ones(s, s, dtype=torch.bool, device=q.device).tril()
        cum = f_log[..., None].repeat(1, 1, 1, s).tril(-1).cumsum(-2)
        log_d = torch.where(causal, cum, float("-inf")) + i[:, :, None, :]
        m = log_d.amax(-1, keepdim=True)
        c = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5 * torch.exp(log_d - m)
        return (c / (torch.maximum(c.sum(-1, keepdim=True).abs(), torch.exp(-m)) + 1e-6)) @ v


def get_inputs():
    return [torch.randn(batch, heads, seq, dim), torch.randn(batch, heads, seq, dim), torch.randn(batch, heads, seq, dim), torch.randn(batch, heads, seq), torch.randn(batch, heads, seq) + 3]


def get_init_inputs():
    return []
