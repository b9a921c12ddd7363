"""Attention of one step of decoding over keys and values in pages (Kwon et al. 2023, arXiv:2309.06180)."""

import torch


def reference(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, table: torch.Tensor, length: torch.Tensor
) -> torch.Tensor:
    """q[sequences, heads, groups, depth], k, v [pages, page, heads, depth] -> o as q.

    The key at position p of a sequence lies in page table[sequence, p // page], at slot p % page; there are
    length[sequence] of them. Each of the `heads` of keys serves `groups` heads of queries.
    """
    keys, values = gathered(k, table), gathered(v, table)
    return attend(q, keys, values, length)


def reference_latent(
    q: torch.Tensor,
    q_rope: torch.Tensor,
    c: torch.Tensor,
    k_rope: torch.Tensor,
    table: torch.Tensor,
    length: torch.Tensor,
    *,
    scale: float,
) -> torch.Tensor:
    """q[sequences, heads, latent], c[pages, page, latent], q_rope, k_rope of another depth -> o as q.

    Latent attention with absorbed weights (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1): all heads share
    one key per position, which consists of a latent vector, the value as well, and a rotated part.
    """
    latent, rope = gathered(c[:, :, None], table), gathered(k_rope[:, :, None], table)
    rows, keys = torch.cat((q, q_rope), -1)[:, None], torch.cat((latent, rope), -1)
    return attend(rows, keys, latent, length, scale)[:, 0]


def gathered(pages: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """pages[pages, page, heads, depth], table[sequences, n] -> [sequences, heads, n * page, depth]."""
    return pages[table.long()].flatten(1, 2).transpose(1, 2)


def attend(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    length: torch.Tensor,
    scale: float | None = None,
) -> torch.Tensor:
    """q[sequences, heads, groups, depth], keys, values [sequences, heads, n, depth] -> o as q.

    Values may have another depth, which is that of o then. Without a scale, it is that of the depth.
    """
    seen = torch.arange(keys.shape[2], device=q.device) < length[:, None]
    return torch.nn.functional.scaled_dot_product_attention(
        q, keys, values, attn_mask=seen[:, None, None, :].expand(-1, -1, q.shape[2], -1), scale=scale
    )
