"""Bounds on rounding errors of any PyTorch code, found by running it in float64 with errors injected."""
