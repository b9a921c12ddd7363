"""The gated unit of Llama's feed-forward layers (Shazeer 2020, arXiv:2002.05202)."""

import torch


def reference(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """gate[rows, cols], up[rows, cols] -> y[rows, cols] = silu(gate) up."""
    return torch.nn.functional.silu(gate) * up
