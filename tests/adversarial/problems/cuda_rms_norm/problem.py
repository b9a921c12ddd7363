import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, hidden_size: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=torch.float16))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        xf = x.float()
        inv_rms = torch.rsqrt(xf.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return (xf * inv_rms * self.weight.float()).to(x.dtype)


batch_size = 4
seq_len = 64
hidden_size = 1024

def get_inputs():
    return [torch.randn(batch_size, seq_len, hidden_size).half()]

def get_init_inputs():
    return [hidden_size]
