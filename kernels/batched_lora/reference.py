"""Low-rank adapters in a batch: each token is multiplied with the two factors of its adapter."""

import torch


def reference(x: torch.Tensor, down: torch.Tensor, up: torch.Tensor, adapter: torch.Tensor) -> torch.Tensor:
    """x[tokens, depth], down[adapters, depth, rank], up[adapters, rank, cols], adapter[tokens] -> y.

    y has the shape [tokens, cols].
    """
    hidden = torch.bmm(x[:, None], down[adapter])
    return torch.bmm(hidden, up[adapter])[:, 0]


def mixture(
    x: torch.Tensor, down: torch.Tensor, up: torch.Tensor, adapter: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """The same with several adapters of each token, added up with weights: adapter, weight [tokens, top_k].

    Of the layers of MixLoRA (Li et al. 2024, arXiv:2404.15159), what the experts add whose input is the same.
    """
    hidden = x[:, None, None] @ down[adapter]
    return (weight[:, None] @ (hidden @ up[adapter])[:, :, 0])[:, 0]
