"""Rotary position embedding (Su et al. 2021, arXiv:2104.09864), pairs half a head apart as in Llama."""

import torch


def reference(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, *, direction: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """q[tokens, heads, pair, half], k[tokens, kv_heads, pair, half], cos, sin [tokens, half] -> q, k turned.

    A head is two halves, whose elements of one index are a pair. Backward is the rotation by the negative
    angle: then q and k are the gradients of what the forward pass returned.
    """
    cos, sin = cos[:, None], sin[:, None] if direction == "forward" else -sin[:, None]
    return _rotated(q, cos, sin), _rotated(k, cos, sin)


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.unbind(-2)
    return torch.stack((first * cos - second * sin, second * cos + first * sin), dim=-2)
