"""Experts of a mixture: each token goes through the feed-forward layers of the experts that it names."""

import torch


def reference(
    x: torch.Tensor,
    expert: torch.Tensor,
    weight: torch.Tensor,
    w_gate: torch.Tensor,
    w_up: torch.Tensor,
    w_down: torch.Tensor,
) -> torch.Tensor:
    """x[tokens, depth], expert and weight[tokens, top_k] -> y[tokens, depth].

    w_gate and w_up have the shape [experts, depth, hidden], w_down [experts, hidden, depth].
    """
    parts = x.new_zeros(*expert.shape, x.shape[1])
    for each in range(len(w_gate)):
        token, place = (expert == each).nonzero(as_tuple=True)
        hidden = torch.nn.functional.silu(x[token] @ w_gate[each]) * (x[token] @ w_up[each])
        parts[token, place] = hidden @ w_down[each]
    return (weight[..., None] * parts).sum(1)
