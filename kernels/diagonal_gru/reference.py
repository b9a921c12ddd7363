"""A GRU with diagonal recurrent weights (ParaRNN, Danieli et al. 2025, arXiv:2510.21450), as a loop."""

import torch


def reference(pre: torch.Tensor, weight: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
    """pre[batch, steps, 3 hidden], weight[hidden, 3], h0[batch, hidden] -> h[batch, steps, hidden].

    pre is the product with the layer's inputs, biases added; the gates are reset, update and new. h is at
    least float32 from step to step.
    """
    kind = torch.promote_types(pre.dtype, torch.float32)
    of_reset, of_update, of_new = weight.to(kind).unbind(-1)
    h = h0.to(kind)
    outputs = []
    for step in pre.to(kind).unbind(1):
        reset, update, new = step.chunk(3, -1)
        reset, update = torch.sigmoid(reset + of_reset * h), torch.sigmoid(update + of_update * h)
        new = torch.tanh(new + of_new * (reset * h))
        h = new + update * (h - new)
        outputs.append(h)
    return torch.stack(outputs, 1).to(pre.dtype)
