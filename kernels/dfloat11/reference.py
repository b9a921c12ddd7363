"""Weights in bfloat16 whose exponents are entropy-coded, alone and before a product.

The format, after DFloat11 (Zhang et al. 2025, arXiv:2504.11651): sign and mantissa of weight [k, n] are
byte plain[k, n], its exponent is a code of 1 to 8 bits. `steps` rows of a column are one stream of codes,
`streams` columns share a start: stream n of block b of rows begins at byte 4 * starts[b, n // streams] +
offsets[b, n] of `words`, least significant bits first. table[the next 8 bits] is 8 * exponent + length - 1.
Any words and any table decode to something, so inputs may be random.
"""

import torch


def decompress(
    plain: torch.Tensor,
    words: torch.Tensor,
    starts: torch.Tensor,
    offsets: torch.Tensor,
    table: torch.Tensor,
    *,
    steps: int,
    streams: int,
) -> torch.Tensor:
    """plain[K, N] uint8, words[size], starts[blocks, groups] int32, offsets[blocks, N], table[256] int16.

    -> the weights' bits [K, N] int16, of bfloat16.
    """
    K, N = plain.shape
    stored = words.contiguous().view(torch.uint8).int()
    group = torch.arange(N, device=plain.device) // streams
    at = 8 * (4 * starts.long()[:, group] + offsets)
    exponents = []
    for _ in range(min(steps, K)):
        # The last stream may end with the words: behind them is nothing to be read.
        byte = at >> 3
        window = (stored[byte] | stored[(byte + 1).clamp(max=len(stored) - 1)] << 8) >> (at & 7)
        entry = table.int()[(window & 255).long()]
        exponents.append(entry >> 3)
        at = at + (entry & 7) + 1
    if not exponents:
        return plain.to(torch.int16)
    exponent = torch.stack(exponents, 1).flatten(0, 1)[:K]
    sign_and_mantissa = plain.int()
    return ((sign_and_mantissa & 128) << 8 | exponent << 7 | sign_and_mantissa & 127).to(torch.int16)


def linear(
    x: torch.Tensor,
    plain: torch.Tensor,
    words: torch.Tensor,
    starts: torch.Tensor,
    offsets: torch.Tensor,
    table: torch.Tensor,
    *,
    steps: int,
    streams: int,
) -> torch.Tensor:
    """x[M, K], the weights as in `decompress` -> y[M, N]."""
    bits = decompress(plain, words, starts, offsets, table, steps=steps, streams=streams)
    return x @ bits.view(torch.bfloat16).to(x.dtype)


def magnitude(x: torch.Tensor, *stored: torch.Tensor, steps: int, streams: int) -> torch.Tensor:
    """|x| |w|: what each sum is made of."""
    weight = decompress(*stored, steps=steps, streams=streams).view(torch.bfloat16)
    return x.abs() @ weight.abs().to(x.dtype)
