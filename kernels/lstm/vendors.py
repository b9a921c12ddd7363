"""What the fused loops are compared with: the library's own layers."""

import torch


def identity(
    pre: torch.Tensor, r: torch.Tensor, h0: torch.Tensor, c0: torch.Tensor, *, gates: int
) -> tuple[torch.nn.LSTM, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Arguments of `layer`: torch.nn.LSTM has weights for its inputs as well, which are the identity here."""
    lstm = torch.nn.LSTM(len(r), len(r) // gates, bias=False, device=pre.device, dtype=pre.dtype)
    lstm.requires_grad_(False)
    lstm.weight_ih_l0.copy_(torch.eye(len(r)))
    lstm.weight_hh_l0.copy_(r)
    return lstm.eval(), pre, h0[None], c0[None]


def layer(
    lstm: torch.nn.LSTM, pre: torch.Tensor, h0: torch.Tensor, c0: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """As the reference, by cuDNN, MIOpen or PyTorch's own loop, after a product of pre and the identity."""
    with torch.no_grad():
        h, (_, c) = lstm(pre, (h0, c0))
    return h, c[0]


def gru_identity(
    pre: torch.Tensor, r: torch.Tensor, h0: torch.Tensor, bias: torch.Tensor, *, gates: int
) -> tuple[torch.nn.GRU, torch.Tensor, torch.Tensor]:
    """The same for `gru_layer`; the third gate alone has a bias of its own."""
    gru = torch.nn.GRU(len(r), len(r) // gates, device=pre.device, dtype=pre.dtype).requires_grad_(False)
    gru.weight_ih_l0.copy_(torch.eye(len(r)))
    gru.weight_hh_l0.copy_(r)
    gru.bias_ih_l0.zero_()
    gru.bias_hh_l0.zero_()[-len(bias) :] = bias
    return gru.eval(), pre, h0[None]


def gru_layer(gru: torch.nn.GRU, pre: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
    """As the reference, likewise."""
    with torch.no_grad():
        return gru(pre, h0)[0]
