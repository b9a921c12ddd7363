"""bfloat16 weights with entropy-coded exponents in Triton: decompressed alone, and before a product.

Each lane of a program decodes a stream of its own, one column of a block of rows, so that lanes neither
wait for each other nor for where another stream ends: in place of the two passes of DFloat11 (Zhang et al.
2025, arXiv:2504.11651), which find the outputs' places, there is an offset for each stream. Neighbouring
lanes read and write neighbouring columns. A stream is a chain of dependent look-ups; many streams in flight
hide their latency.

SYMBOLS codes of at most 8 bits are taken from each 33 bits that are loaded: two aligned words, of which a
lane shifts its position out. The table has 256 entries and stays in L1.

Before a product all weights of the layer are decompressed to the type of x, as in the paper, and multiplied
by the kernel of matmul.
"""

import torch
import triton
import triton.language as tl

from kernels.matmul.matmul_triton import launch as multiply


@triton.jit
def _decode(window, at, table):
    """The next code of each lane -> its exponent, what is left of the window, where the stream goes on."""
    entry = tl.load(table + (window & 255)).to(tl.int32)
    length = (entry & 7) + 1
    return entry >> 3, window >> length, at + length


@triton.jit
def _window(words, at):
    """At least 33 bits of each lane's stream from bit `at`, as 64 bits."""
    place = words + (at >> 5)
    low = tl.load(place).to(tl.uint32, bitcast=True).to(tl.uint64)
    high = tl.load(place + 1).to(tl.uint32, bitcast=True).to(tl.uint64)
    return (high << 32 | low) >> (at & 31).to(tl.uint64)


@triton.jit
def _store(place, byte, exponent, inside):
    """Sign and mantissa with their exponent: as bits, or as a number of the type of the place."""
    sign_and_mantissa = byte.to(tl.int32)
    bits = (sign_and_mantissa & 128) << 8 | exponent << 7 | sign_and_mantissa & 127
    if place.dtype.element_ty == tl.int16:
        tl.store(place, bits.to(tl.int16), mask=inside)
    else:
        value = (bits << 16).to(tl.float32, bitcast=True)
        tl.store(place, value.to(place.dtype.element_ty), mask=inside)


@triton.jit
def decompress(
    plain, words, starts, offsets, table, w, K, N, groups,
    STEPS: tl.constexpr, STREAMS: tl.constexpr, BLOCK_N: tl.constexpr, SYMBOLS: tl.constexpr,
):  # fmt: skip
    """plain[K, N], the exponents -> w[K, N]; a program has a block of rows and BLOCK_N columns."""
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    block = tl.program_id(1).to(tl.int64)
    there = n < N
    start = tl.load(starts + block * groups + n // STREAMS, mask=there, other=0).to(tl.int64)
    offset = tl.load(offsets + block * N + n, mask=there, other=0).to(tl.int64)
    at = 8 * (4 * start + offset)
    first = block * STEPS
    last = tl.minimum(first + STEPS, K)
    place = first * N + n
    for row in range(first, last, SYMBOLS):
        window = _window(words, at)
        for symbol in tl.static_range(SYMBOLS):
            inside = there & (row + symbol < last)
            byte = tl.load(plain + place, mask=inside, other=0)
            exponent, window, at = _decode(window, at, table)
            _store(w + place, byte, exponent, inside)
            place += N


def launch(*, plain, words, starts, offsets, table, w, steps, streams, BLOCK_N, SYMBOLS, num_warps):
    """plain[K, N], the exponents -> w[K, N], of any type."""
    K, N = plain.shape
    if not K or not N:
        return
    decompress[(triton.cdiv(N, BLOCK_N), triton.cdiv(K, steps))](
        plain, words, starts, offsets, table, w, K, N, triton.cdiv(N, streams),
        STEPS=steps, STREAMS=streams, BLOCK_N=BLOCK_N, SYMBOLS=SYMBOLS, num_warps=num_warps,
    )  # fmt: skip


def launch_linear(
    *, x, plain, words, starts, offsets, table, y, steps, streams,
    SYMBOLS, BLOCK_M, BLOCK_N, BLOCK_K, num_warps, num_stages,
):  # fmt: skip
    """x[M, K] with any row stride, the weights -> y[M, N]."""
    K, N = plain.shape
    weight = torch.empty(K, N, dtype=x.dtype, device=x.device)
    launch(
        plain=plain, words=words, starts=starts, offsets=offsets, table=table, w=weight,
        steps=steps, streams=streams, BLOCK_N=32 * num_warps, SYMBOLS=SYMBOLS, num_warps=num_warps,
    )  # fmt: skip
    multiply(
        a=x, b=weight, c=y, epilogue="none", BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=1,
        num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
