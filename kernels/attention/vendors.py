"""What attention is compared with: its scores in memory, as before FlashAttention; a window in pieces."""

import torch

from kernels.attention.reference import reference, visible


def unfused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, mask: str) -> torch.Tensor:
    """As the reference; two products and a softmax, each with all scores [batch, groups, queries, keys]."""
    scores = q @ k.unsqueeze(1).mT * q.shape[-1] ** -0.5
    seen = visible(*scores.shape[-2:], mask, q.device)
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    return scores.softmax(-1) @ v.unsqueeze(1)


def unfused_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, *, mask: str
) -> tuple[torch.Tensor, ...]:
    """Gradients of `unfused` by autograd, which keeps the weights of the forward pass."""
    leaves = [each.detach().requires_grad_() for each in (q, k, v)]
    with torch.enable_grad():
        return torch.autograd.grad(unfused(*leaves, mask=mask), leaves, dout)


def in_pieces(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, mask: str) -> torch.Tensor:
    """As the reference of a window, in pieces of as many queries as it has keys."""
    queries = q.shape[2]
    window = k.shape[1] - queries + 1
    outputs = []
    for first in range(0, queries, window):
        last = min(first + window, queries)
        keys = slice(first, last + window - 1)
        outputs.append(reference(q[:, :, first:last], k[:, keys], v[:, keys], mask=mask))
    return torch.cat(outputs, 2)
