import torch
import torch.nn as nn

TOKENS = 60
HEADS = 2
DIM = 32


class Model(nn.Module):
    """Rotary embedding with given positions."""

    def forward(self, x, pos):
        half = x.shape[-1] // 2
        freq = 10000.0 ** (-torch.arange(half, dtype=torch.float32, device=x.device) / half)
        a = pos.float()[:, None] * freq
        c, s = torch.cos(a)[:, None, :], torch.sin(a)[:, None, :]
        x1, x2 = x[..., :half], x[..., half:]
        return torch.cat([x1 * c - x2 * s, x2 * c + x1 * s], dim=-1)


def get_inputs():
    start = int(torch.randint(0, 400, (1,)))
    return [torch.randn(TOKENS, HEADS, DIM), torch.arange(start, start + TOKENS)]


def get_init_inputs():
    return []
