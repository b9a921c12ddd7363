"""Guards memory that a candidate allocates itself: filled with a pattern, between two guard bands.

In: a shape, a type, a device. Out: a tensor; later, what was written outside of it and how many elements
never were. Blocks on a device work with PyTorch's operators alone, so that the host can stand in for one in
tests.
"""

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from pipeline.sandbox.observation import tensor_access
from pipeline.sandbox.torch_internals import TensorBase
from pipeline.verify.harness.buffers import ALIGNMENT, GUARD_BYTES, repeat_word

_NUMBERS = (0x4A4A, 0x3C5A, 0x51A5)  # words: floats of usual magnitude
_FIRST_NAN, _NANS = 0x7FF9, 6  # 0x7ff8 is what computing gives
_GUARD = 0x7FFB
_LEAST_GUARD = 4096  # bytes
_KEPT = 256 << 20  # bytes of freed memory that is still watched

_frombuffer: Any = torch.frombuffer
_view: Any = TensorBase.view
_as_strided: Any = TensorBase.as_strided


class _Block:
    """One allocation: guard, span, guard."""

    def __init__(self, count: int, itemsize: int, word: int) -> None:
        size = count * itemsize
        self.guard = min(max(size, _LEAST_GUARD), GUARD_BYTES) // ALIGNMENT * ALIGNMENT
        self.size, self.itemsize = size, itemsize
        self.word = word
        whole = 2 * self.guard + -(-size // ALIGNMENT) * ALIGNMENT
        raw = np.empty(whole + ALIGNMENT, dtype=np.uint8)
        offset = -raw.ctypes.data % ALIGNMENT
        self.memory = raw[offset : offset + whole]
        words = self.memory.view(np.uint16)
        words[...] = _GUARD
        self._first, self._end = self.guard // 2, (self.guard + size + 1) // 2
        words[self._first : self._end] = word
        span = self.memory[self.guard : self.guard + size]
        self.start = span.ctypes.data if size else 0
        self.in_use = weakref.ref(span)
        self.span: np.ndarray | None = span

    def trespass(self) -> str | None:
        """What was written outside of it; restores the guards."""
        words = self.memory.view(np.uint16)
        for band, place in ((words[: self._first], "before its start"), (words[self._end :], "past its end")):
            changed = np.count_nonzero(band != _GUARD)
            if changed:
                band[...] = _GUARD
                return f"{2 * changed} bytes written {place}, of a tensor of {self.size} bytes of its own"
        return None


class GuardedAllocations:
    """All that a candidate allocated and that is still watched."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._there: list[DeviceBlock] = []
        self._dead = 0
        self._found: list[str] = []
        self._nans = itertools.cycle(range(_FIRST_NAN, _FIRST_NAN + _NANS))
        self._numbers = itertools.cycle(_NUMBERS)
        self._word = next(self._nans)
        self._calls = 0

    def next_call(self, word: int | None = None) -> None:
        """Another pattern: this one, or one that differs from the last."""
        self._calls += 1
        if word is not None:
            self._word = word
            return
        self._word = next(self._nans) if self._calls % 2 else next(self._numbers)
        if self._word == _GUARD:
            self._word = next(self._nans)

    def make(
        self,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: torch.dtype,
        device: torch.device | None = None,
    ) -> torch.Tensor | None:
        """A tensor in memory of its own, on the host or a device; None for one without elements."""
        if 0 in shape:
            return None
        count = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        if device is not None:
            there = DeviceBlock(count, dtype, (self._word, _GUARD), device)
            self._there.append(there)
            return there.tensor(shape, strides)
        block = _Block(count, dtype.itemsize, self._word)
        flat = _frombuffer(block.span, dtype=dtype, count=count)
        block.span = None  # the tensor holds it now, and its end shows in `in_use`
        self._blocks.append(block)
        if sum(each.size for each in self._blocks if each.in_use() is None) > _KEPT:
            self._forget()
        made: torch.Tensor = _as_strided(flat, tuple(shape), tuple(strides))
        return made

    def spans(self) -> list[tuple[int, int]]:
        """Address and bytes of all that is in use on the host."""
        return [(block.start, block.size) for block in self._blocks if block.in_use() is not None]

    def items(self) -> list[tuple[int, int, int]]:
        """The same, with the bytes of an element."""
        return [
            (block.start, block.size, block.itemsize) for block in self._blocks if block.in_use() is not None
        ]

    def on_devices(self) -> list[torch.Tensor]:
        """Blocks on devices, guards included."""
        return [block.whole for block in self._there]

    def trespasses(self) -> tuple[str, ...]:
        """What was written outside of tensors since the last call of this, one line each."""
        self._forget()
        self._found += [trespass for block in self._there if (trespass := block.trespass()) is not None]
        self._there.clear()  # whether they are in use cannot be seen: each call looks at its own
        found, self._found = tuple(dict.fromkeys(self._found)), []
        return found

    def unwritten(self, tensor: torch.Tensor) -> int:
        """Elements that still hold the pattern; 0 where a right value may look like it."""
        start = tensor_access.address(tensor)
        blocks: list[_Block | DeviceBlock] = [*self._blocks, *self._there]
        block = next((each for each in blocks if each.start <= start < each.start + each.size), None)
        if block is None or not tensor_access.numel(tensor):
            return 0
        if tensor_access.dtype(tensor) is torch.bool:  # a copy of a bool is 0 or 1, whatever it was
            with tensor_access.plainly():
                return int(np.count_nonzero(tensor_access.content(_view(tensor, torch.uint8)) > 1))
        content = tensor_access.content(tensor)
        itemsize = tensor_access.itemsize(tensor)
        usual = itemsize == 2 and not (
            tensor_access.dtype(tensor).is_floating_point and block.word >= _FIRST_NAN
        )
        if itemsize == 1 or usual:
            return 0
        return int((content.view(np.uint16).reshape(-1, itemsize // 2) == block.word).all(axis=1).sum())

    def _forget(self) -> None:
        """Look at the guards of all blocks, forget freed ones, and restore guards that were overwritten."""
        for block in self._blocks:
            trespass = block.trespass()
            if trespass is not None:
                self._found.append(trespass)
        self._blocks = [block for block in self._blocks if block.in_use() is not None]


_WORD = 2  # bytes


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
        self.whole, self._dtype = whole, dtype
        self.start = whole.data_ptr() + self._guard * _WORD

    def tensor(self, shape: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
        """The span as a tensor."""
        flat = self.whole[self._guard : self._end].view(self._dtype)
        made: torch.Tensor = _as_strided(flat, tuple(shape), tuple(strides))
        return made

    def trespass(self) -> str | None:
        """What was written outside of it."""
        bands = (self.whole[: self._guard], "before its start"), (self.whole[self._used :], "past its end")
        for band, place in bands:
            changed = int((band != self._guard_word).sum())
            if changed:
                band.fill_(self._guard_word)
                return f"{_WORD * changed} bytes written {place}, of a tensor of {self.size} bytes of its own"
        return None
