"""One allocation of a candidate in the memory of a device: a pattern between two guard bands.

In: a number of elements, a type, a device. Out: a tensor, what was written beside it, how much of it never
was. Works with PyTorch's operators alone, so the host can stand for a device in tests.
"""

from collections.abc import Sequence
from typing import Any

import torch

from pipeline.verify.harness.buffers import ALIGNMENT, GUARD_BYTES, repeat_word

_WORD = 2  # bytes
_as_strided: Any = torch._C.TensorBase.as_strided


class DeviceBlock:
    """Guard, span, guard."""

    def __init__(self, count: int, dtype: torch.dtype, words: tuple[int, int], device: torch.device) -> None:
        self.word, self._guard_word = words
        self.size = count * dtype.itemsize
        self._guard = GUARD_BYTES // _WORD
        self._end = self._guard + -(-self.size // ALIGNMENT) * ALIGNMENT // _WORD
        self._used = self._guard + -(-self.size // _WORD)
        whole = torch.full((self._end + self._guard,), self._guard_word, dtype=torch.int16, device=device)
        whole[self._guard : self._used] = repeat_word(self.word, _WORD)
        self._whole, self._dtype = whole, dtype
        self.start = whole.data_ptr() + self._guard * _WORD

    def tensor(self, shape: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
        """The span as a tensor."""
        flat = self._whole[self._guard : self._end].view(self._dtype)
        made: torch.Tensor = _as_strided(flat, tuple(shape), tuple(strides))
        return made

    def trespass(self) -> str | None:
        """What was written beside it."""
        bands = (self._whole[: self._guard], "before its start"), (self._whole[self._used :], "past its end")
        for band, place in bands:
            changed = int((band != self._guard_word).sum())
            if changed:
                band.fill_(self._guard_word)
                return f"{_WORD * changed} bytes written {place}, of a tensor of {self.size} bytes of its own"
        return None
