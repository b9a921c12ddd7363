"""Causal linear attention with a decay per head, in its parallel form (Sun et al. 2023, arXiv:2307.08621)."""

import torch


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rate: torch.Tensor) -> torch.Tensor:
    """q, k, v [batch, heads, steps, depth], rate[heads] -> o as q.

    The same as the loop S_t = exp(-rate) S_{t-1} + k_t v_t^T, o_t = q_t S_t over time. Rate 0 is linear
    attention (Katharopoulos et al. 2020, arXiv:2006.16236) without its normalisation.
    """
    step = torch.arange(q.shape[2], device=q.device)
    distance = step[:, None] - step
    slope = rate.to(torch.promote_types(q.dtype, torch.float32))[:, None, None]
    decay = torch.exp(-slope * distance.clamp(min=0))
    weights = torch.where(distance >= 0, (q @ k.mT) * decay, 0.0)
    return weights.to(q.dtype) @ v
