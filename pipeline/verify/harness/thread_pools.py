"""Starts the thread pools of libraries, so that no candidate is blamed for their threads."""

import numpy as np
import torch

_PARALLEL = 1 << 18  # elements that PyTorch shares among threads
_PRODUCT = 512  # rows and columns of a product that NumPy shares among threads


def fill_pools(threads: int, *, interpreted: bool) -> None:
    """PyTorch's pools and OpenMP's, with so many threads.

    `interpreted`: that of NumPy's linear algebra too, with which Triton's interpreter computes products.
    """
    torch.set_num_threads(threads)
    if threads > 1:
        torch.full((_PARALLEL,), 0.0)
    if interpreted:
        square = np.ones((_PRODUCT, _PRODUCT), np.float32)
        np.matmul(square, square)
