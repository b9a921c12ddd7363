"""Low-rank adapters in a batch: each token is multiplied with the two factors of its adapter."""

import torch


def reference(x: torch.Tensor, down: torch.Tensor, up: torch.Tensor, adapter: torch.Tensor) -> torch.Tensor:
    """x[tokens, depth], down[adapters, depth, rank], up[adapters, rank, cols], adapter[tokens] -> y.

    y has the shape [tokens, cols].
    """
    hidden = torch.bmm(x[:, None], down[adapter])
    return torch.bmm(hidden, up[adapter])[:, 0]
