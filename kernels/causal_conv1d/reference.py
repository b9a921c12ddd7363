"""Depthwise causal convolution with SiLU, as in a Mamba block (Gu and Dao 2023, arXiv:2312.00752)."""

import torch


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x[batch, steps, channels], weight[channels, taps], bias[channels] -> y as x.

    Each channel has a filter of its own, whose last tap meets the step itself.
    """
    channels, taps = weight.shape
    padded = torch.nn.functional.pad(x.mT, (taps - 1, 0))
    z = torch.nn.functional.conv1d(padded, weight.unsqueeze(1), bias, groups=channels)
    return torch.nn.functional.silu(z).mT
