"""Compresses a matrix of bfloat16 weights without loss into the format of `kernels.dfloat11.reference`."""

import heapq

import torch

LIMIT = 8  # bits of the longest code: the table has an entry for each value of them


def compress(weight: torch.Tensor, *, steps: int = 256, streams: int = 32) -> tuple[torch.Tensor, ...]:
    """weight[K, N] bfloat16 -> plain, words, starts, offsets and table, as `decompress` takes them."""
    K, N = weight.shape
    blocks, groups = -(-K // steps), -(-N // streams)
    bits = weight.contiguous().view(torch.int16).int()
    plain = ((bits >> 8 & 128) | (bits & 127)).to(torch.uint8)
    exponent = bits >> 7 & 255
    lengths = code_lengths(torch.bincount(exponent.flatten(), minlength=256).tolist())
    codes = reversed_codes(lengths)
    # [blocks, steps, groups, streams]; what lies beyond the matrix takes no bits.
    padding = (0, groups * streams - N, 0, blocks * steps - K)
    inside = torch.nn.functional.pad(torch.ones_like(exponent), padding)
    size = torch.tensor(lengths)[torch.nn.functional.pad(exponent, padding)] * inside
    code = torch.tensor(codes)[torch.nn.functional.pad(exponent, padding)] * inside
    size, code = (each.view(blocks, steps, groups, streams) for each in (size, code))
    stream_bytes = (size.sum(1) + 7) // 8
    offsets = stream_bytes.cumsum(-1) - stream_bytes
    group_words = (stream_bytes.sum(-1) + 3) // 4
    starts = (group_words.flatten().cumsum(0) - group_words.flatten()).view(blocks, groups)
    first = 8 * (4 * starts[..., None] + offsets)
    at = (first[:, None] + size.cumsum(1) - size).flatten()
    # No two codes share a bit, so sums are as good as disjunctions.
    behind = steps * streams // 4 + 1
    stored = torch.zeros(4 * (int(group_words.sum()) + behind), dtype=torch.long)
    shifted = code.flatten() << (at & 7)
    stored.index_add_(0, at >> 3, shifted & 255)
    stored.index_add_(0, (at >> 3) + 1, shifted >> 8)
    return (
        plain,
        stored.to(torch.uint8).view(torch.int32),
        starts.to(torch.int32),
        offsets.flatten(1)[:, :N].to(torch.int16),
        decoding_table(lengths, codes),
    )


def code_lengths(counts: list[int], limit: int = LIMIT) -> list[int]:
    """Lengths of the best prefix code of at most `limit` bits: package-merge (Larmore 1990)."""
    leaves = sorted((count, (symbol,)) for symbol, count in enumerate(counts) if count)
    if len(leaves) < 2:
        return [int(count > 0) for count in counts]
    packages: list[tuple[int, tuple[int, ...]]] = []
    for _ in range(limit):
        pairs = zip(packages[::2], packages[1::2], strict=False)
        packages = list(heapq.merge(leaves, [(a[0] + b[0], a[1] + b[1]) for a, b in pairs]))
    lengths = [0] * len(counts)
    for _, symbols in packages[: 2 * len(leaves) - 2]:
        for symbol in symbols:
            lengths[symbol] += 1
    return lengths


def reversed_codes(lengths: list[int]) -> list[int]:
    """The canonical code, the first bit of each lowest."""
    codes, code, before = [0] * len(lengths), 0, 0
    for length, symbol in sorted((length, symbol) for symbol, length in enumerate(lengths) if length):
        code <<= length - before
        codes[symbol] = int(f"{code:0{length}b}"[::-1], 2)
        code, before = code + 1, length
    return codes


def decoding_table(lengths: list[int], codes: list[int], limit: int = LIMIT) -> torch.Tensor:
    """Entry [the next `limit` bits]: 8 * symbol + length - 1."""
    table = torch.zeros(1 << limit, dtype=torch.int16)
    for symbol, (length, code) in enumerate(zip(lengths, codes, strict=True)):
        if length:
            table[code :: 1 << length] = 8 * symbol + length - 1
    return table
