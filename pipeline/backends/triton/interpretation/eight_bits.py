"""Floating-point types of 8 bits in Triton's interpreter, computed in NumPy.

In: bits, or float32 values. Out: the other. Encoding rounds to nearest even and never to infinity, as devices
do. Triton's own conversion loses the carry of what rounds up to the next power of two. Operators of PyTorch
would count as the candidate's.
"""

import functools
from typing import Any

import numpy as np
import torch
import triton.language as tl

_TYPES = {
    tl.float8e4nv: torch.float8_e4m3fn,
    tl.float8e4b8: torch.float8_e4m3fnuz,
    tl.float8e5: torch.float8_e5m2,
    tl.float8e5b16: torch.float8_e5m2fnuz,
}
_SIGN = np.uint8(0x80)


def prepare() -> None:
    """Make the tables, before any operator of PyTorch is observed."""
    for kind in _TYPES:
        _table(kind)


def is_eight_bits(kind: Any) -> bool:
    """Whether it is such a type of Triton's."""
    return kind in _TYPES


def decode(bits: np.ndarray, kind: Any) -> np.ndarray:
    """Bits -> float32, exactly."""
    values: np.ndarray = _table(kind)[bits.astype(np.uint8, copy=False)]
    return values


def encode(values: np.ndarray, kind: Any) -> np.ndarray:
    """float32 -> bits."""
    sizes = _sizes(kind)
    halves = (sizes[:-1] + sizes[1:]) / 2
    found = np.abs(values.astype(np.float32, copy=False))
    code = np.searchsorted(halves, found)
    is_tie = found == halves[np.minimum(code, halves.size - 1)]
    code = (code + (is_tie & (code % 2 == 1))).astype(np.uint8)
    negative = np.signbit(values) & ((code > 0) | ~np.isnan(_table(kind)[_SIGN]))  # some have no -0
    bits: np.ndarray = np.where(np.isnan(values), _not_a_number(kind), code | (negative * _SIGN))
    return bits.astype(np.uint8)


@functools.cache
def _table(kind: Any) -> np.ndarray:
    """The value of each pattern of bits."""
    values: np.ndarray = torch.arange(256, dtype=torch.uint8).view(_TYPES[kind]).float().numpy()
    return values


def _sizes(kind: Any) -> np.ndarray:
    """Finite values from 0 on, ascending like their bits."""
    values = _table(kind)[:_SIGN]
    finite: np.ndarray = values[np.isfinite(values)]
    return finite


def _not_a_number(kind: Any) -> np.uint8:
    """A NaN without sign."""
    return np.uint8(_SIGN if np.isnan(_table(kind)[_SIGN]) else 0x7F)
