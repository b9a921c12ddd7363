"""Judges variants of declared kernels, which write into outputs that are passed to them."""
