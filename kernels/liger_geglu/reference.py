"""The gated unit of Gemma's feed-forward layers (Shazeer 2020, arXiv:2002.05202), GELU by its tanh form."""

import torch


def reference(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """gate[rows, cols], up[rows, cols] -> y[rows, cols] = gelu(gate) up."""
    return torch.nn.functional.gelu(gate, approximate="tanh") * up
