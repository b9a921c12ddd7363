"""What attention over pages is compared with: PyTorch's attention over keys and values that lie together."""

import torch

from kernels.paged_attention.reference import attend, gathered


def together(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor, length: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Called as the reference -> the arguments of `contiguous`. Not part of a call."""
    return q, gathered(k, table).contiguous(), gathered(v, table).contiguous(), length


contiguous = attend


def latent_together(
    q: torch.Tensor,
    q_rope: torch.Tensor,
    c: torch.Tensor,
    k_rope: torch.Tensor,
    table: torch.Tensor,
    length: torch.Tensor,
    *,
    scale: float,
) -> tuple[torch.Tensor | float, ...]:
    """Called as the reference -> the arguments of `latent_contiguous`. Not part of a call."""
    latent, rope = gathered(c[:, :, None], table), gathered(k_rope[:, :, None], table)
    rows, keys = torch.cat((q, q_rope), -1)[:, None].contiguous(), torch.cat((latent, rope), -1).contiguous()
    return rows, keys, latent.contiguous(), length, scale


def latent_contiguous(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, length: torch.Tensor, scale: float
) -> torch.Tensor:
    """q[sequences, 1, heads, depth], keys, values [sequences, 1, n, depth] -> o[sequences, heads, depth]."""
    return attend(q, keys, values, length, scale)[:, 0]
