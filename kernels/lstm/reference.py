"""An LSTM layer (Hochreiter and Schmidhuber 1997, doi:10.1162/neco.1997.9.8.1735) as a loop over time."""

import torch


def reference(
    pre: torch.Tensor, r: torch.Tensor, h0: torch.Tensor, c0: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """pre[steps, batch, 4 hidden], r[4 hidden, hidden], h0, c0 [batch, hidden] -> h[steps, batch, hidden], c.

    pre is the product with the layer's inputs, biases added; the gates are in the order of torch.nn.LSTM:
    input, forget, cell, output. c[batch, hidden] is the last cell state; on the way it is at least float32.
    """
    kind = torch.promote_types(pre.dtype, torch.float32)
    h, c = h0, c0.to(kind)
    outputs = [h[:0]]
    for step in pre:
        i, f, g, o = (step.to(kind) + (h @ r.t()).to(kind)).chunk(4, -1)
        c = torch.addcmul(torch.sigmoid(f) * c, torch.sigmoid(i), torch.tanh(g))
        h = (torch.sigmoid(o) * torch.tanh(c)).to(pre.dtype)
        outputs.append(h)
    return torch.cat(outputs).view(len(pre), *h0.shape), c.to(pre.dtype)
