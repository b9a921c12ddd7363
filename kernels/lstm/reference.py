"""Recurrent layers as loops over time. States are at least float32; h between steps has the type of pre.

pre[steps, batch, gates hidden] is the product with the layer's inputs, biases added; r[gates hidden, hidden]
are the recurrent weights.
"""

import torch


def lstm(
    pre: torch.Tensor, r: torch.Tensor, h0: torch.Tensor, c0: torch.Tensor, *, gates: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """An LSTM: pre, r, h0, c0 [batch, hidden] -> h[steps, batch, hidden] and the last c[batch, hidden].

    Hochreiter and Schmidhuber 1997, doi:10.1162/neco.1997.9.8.1735. The gates are in the order of
    torch.nn.LSTM: input, forget, cell, output.
    """
    kind = torch.promote_types(pre.dtype, torch.float32)
    h, c = h0, c0.to(kind)
    outputs = [h[:0]]
    for step in pre:
        i, f, g, o = (step.to(kind) + (h @ r.t()).to(kind)).chunk(gates, -1)
        c = torch.addcmul(torch.sigmoid(f) * c, torch.sigmoid(i), torch.tanh(g))
        h = (torch.sigmoid(o) * torch.tanh(c)).to(pre.dtype)
        outputs.append(h)
    return torch.cat(outputs).view(len(pre), *h0.shape), c.to(pre.dtype)


def gru(
    pre: torch.Tensor, r: torch.Tensor, h0: torch.Tensor, bias: torch.Tensor, *, gates: int
) -> torch.Tensor:
    """A GRU: pre, r, h0[batch, hidden], bias[hidden] -> h[steps, batch, hidden].

    Cho et al. 2014, arXiv:1406.1078, in the form of torch.nn.GRU: the gates are reset, update, new, and the
    reset gate scales the third gate's product with h, its bias included.
    """
    kind = torch.promote_types(pre.dtype, torch.float32)
    h = h0
    outputs = [h[:0]]
    for step in pre:
        inputs, products = step.to(kind).chunk(gates, -1), (h @ r.t()).to(kind).chunk(gates, -1)
        reset, update = (torch.sigmoid(inputs[gate] + products[gate]) for gate in (0, 1))
        new = torch.tanh(inputs[2] + reset * (products[2] + bias.to(kind)))
        h = (new + update * (h.to(kind) - new)).to(pre.dtype)
        outputs.append(h)
    return torch.cat(outputs).view(len(pre), *h0.shape)


def slstm(pre: torch.Tensor, r: torch.Tensor, *, gates: int) -> torch.Tensor:
    """An sLSTM from the start of its sequences, where all states are zero: pre, r -> h[steps, batch, hidden].

    Beck et al. 2024, arXiv:2405.04517, with a sigmoid as forget gate; m keeps exponents at 0 or below. The
    gates are input, forget, cell, output.
    """
    kind = torch.promote_types(pre.dtype, torch.float32)
    h = pre.new_zeros(pre.shape[1], r.shape[1])
    c = n = h.to(kind)
    m = torch.full_like(c, -torch.inf)
    outputs = [h[:0]]
    for step in pre:
        i, f, z, o = (step.to(kind) + (h @ r.t()).to(kind)).chunk(gates, -1)
        kept = m - torch.nn.functional.softplus(-f)
        m = torch.maximum(kept, i)
        forget, added = torch.exp(kept - m), torch.exp(i - m)
        c = torch.addcmul(forget * c, added, torch.tanh(z))
        n = forget * n + added
        h = (torch.sigmoid(o) * (c / n)).to(pre.dtype)
        outputs.append(h)
    return torch.cat(outputs).view(len(pre), *h.shape)
