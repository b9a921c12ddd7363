"""What compressed weights are compared with: Deflate of their exponents, and dense weights."""

import zlib
from typing import Any

import torch

from kernels.dfloat11.reference import decompress


def deflated(*stored: torch.Tensor, **attributes: Any) -> tuple[torch.Tensor, bytes]:
    """Called as `decompress` -> the arguments of `inflate`. Not part of a call."""
    exponents = decompress(*stored, **attributes).int() >> 7 & 255
    return stored[0], zlib.compress(exponents.to(torch.uint8).numpy().tobytes())


def inflate(plain: torch.Tensor, exponents: bytes) -> torch.Tensor:
    """plain[K, N] and the exponents in the format of zlib -> the weights' bits [K, N]."""
    raw = torch.frombuffer(bytearray(zlib.decompress(exponents)), dtype=torch.uint8)
    bits = raw.view_as(plain).to(torch.int16) << 7
    return bits | (plain & 127) | (plain & 128).to(torch.int16) << 8


def decompressed(*stored: torch.Tensor, **attributes: Any) -> tuple[torch.Tensor]:
    """Called as `decompress` -> the arguments of `copy`. Not part of a call."""
    return (decompress(*stored, **attributes),)


def copy(bits: torch.Tensor) -> torch.Tensor:
    """Weights that are not compressed, from one place in memory to another."""
    return bits.clone()


def dense_weights(
    x: torch.Tensor, *stored: torch.Tensor, **attributes: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Called as `linear` -> the arguments of `dense`. Not part of a call."""
    return x, decompress(*stored, **attributes).view(torch.bfloat16).to(x.dtype)


def dense(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x[M, K], weight[K, N] -> y[M, N] by the library that PyTorch chooses: oneDNN, MKL or cuBLAS."""
    return x @ weight
