"""Triton's interpreter, corrected, and what it watches in kernels."""
