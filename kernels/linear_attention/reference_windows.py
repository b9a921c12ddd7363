"""Linear attention within windows of any sizes (ScatterFormer: He et al. 2024, arXiv:2401.00912)."""

import torch


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, ends: torch.Tensor, eps: float
) -> torch.Tensor:
    """q, k, v [tokens, heads, depth], ends[windows] -> o as q.

    Window i has the tokens from ends[i - 1], or the first one, up to, but without, ends[i]; the last of the
    ends is the number of tokens. Queries and keys are cut off at 0, so that their products are weights of all
    tokens of a window (Katharopoulos et al. 2020, arXiv:2006.16236). This is the quadratic form.
    """
    window = torch.searchsorted(ends, torch.arange(len(q), device=q.device), right=True)
    q, k, v = q.relu().transpose(0, 1), k.relu().transpose(0, 1), v.transpose(0, 1)
    weights = torch.where(window[:, None] == window, q @ k.mT, 0.0)
    return ((weights @ v) / (weights.sum(-1, keepdim=True) + eps)).transpose(0, 1)
