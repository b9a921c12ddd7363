"""What attention is compared with: its scores in memory, as before FlashAttention."""

import torch


def unfused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, mask: str) -> torch.Tensor:
    """As the reference; two products and a softmax, each with all scores [batch, groups, queries, keys]."""
    scores = q @ k.unsqueeze(1).mT * q.shape[-1] ** -0.5
    queries, keys = scores.shape[-2:]
    if mask == "causal" and queries > 1:
        seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(max(keys - queries, 0))
        scores = scores.masked_fill(~seen, -torch.inf)
    return scores.softmax(-1) @ v.unsqueeze(1)
