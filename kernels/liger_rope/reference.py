"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), pairs half a head apart as in Llama."""

import torch


def reference(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """q[batch, heads, tokens, size], k[batch, kv_heads, tokens, size] -> the same, rotated by position.

    cos, sin [batch, tokens, size]: their first halves count, the second ones repeat them by convention.
    """
    return _rotated(q, cos, sin), _rotated(k, cos, sin)


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    cos, sin = cos[:, None, :, :half], sin[:, None, :, :half]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
