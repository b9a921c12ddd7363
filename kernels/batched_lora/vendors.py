"""What the batched kernel is compared with: the library's products for one adapter after the other."""

import torch


def loop(x: torch.Tensor, down: torch.Tensor, up: torch.Tensor, adapter: torch.Tensor) -> torch.Tensor:
    """As the reference; PyTorch gathers the tokens of each adapter and scatters their results."""
    y = x.new_empty(x.shape[0], up.shape[2])
    for each in adapter.unique().tolist():
        tokens = (adapter == each).nonzero()[:, 0]
        y[tokens] = x[tokens] @ down[each] @ up[each]
    return y


def mixture_loop(
    x: torch.Tensor, down: torch.Tensor, up: torch.Tensor, adapter: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """As the reference of a mixture, one adapter after the other."""
    y = x.new_zeros(x.shape[0], up.shape[2])
    for each in adapter.unique().tolist():
        tokens, places = (adapter == each).nonzero(as_tuple=True)
        found = x[tokens] @ down[each] @ up[each]
        y.index_add_(0, tokens, weight[tokens, places][:, None] * found)
    return y
