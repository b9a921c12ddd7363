"""Variants of declared kernels, which write to outputs that they are given."""
