"""What attention over pages is compared with: PyTorch's attention over keys and values that lie together."""

import torch

from kernels.paged_attention.reference import attend, gathered


def together(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor, length: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Called as the reference -> the arguments of `contiguous`. Not part of a call."""
    return q, gathered(k, table).contiguous(), gathered(v, table).contiguous(), length


contiguous = attend
