"""Capture what `torch.compile` generates for a reference, and make a source of its own from it."""
