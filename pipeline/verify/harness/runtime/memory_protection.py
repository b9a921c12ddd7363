"""Makes parts of this process's memory read-only or inaccessible, with `mprotect`."""

import ctypes
import mmap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pipeline.verify.harness.buffers import Slot

_NOTHING, _READ, _WRITE = 0, 1, 2


@contextmanager
def protected(memory: mmap.mmap, slots: Iterable[Slot]) -> Iterator[None]:
    """Inside, a write to one of these tensors ends this process by SIGSEGV; others may go on writing.

    Whole pages are protected: their guard bands are larger than a page.

    Raises
    ------
    OSError
        The kernel refused.
    """
    kept = [slot for slot in slots if slot.span]
    protect(memory, kept)
    try:
        yield
    finally:
        unprotect(memory, kept)


@contextmanager
def fenced(memory: mmap.mmap, slots: Iterable[Slot]) -> Iterator[None]:
    """Inside, touching the whole pages of these tensors' guard bands ends this process by SIGSEGV.

    The rest of a page that holds a part of a tensor can still be read: place its end at the end of a page.

    Raises
    ------
    OSError
        The kernel refused.
    """
    bands = [band for slot in slots for band in _bands(slot)]
    for first, end in bands:
        _change_range(memory, first, end, _NOTHING)
    try:
        yield
    finally:
        for first, end in bands:
            _change_range(memory, first, end, _READ | _WRITE)


def _bands(slot: Slot) -> Iterator[tuple[int, int]]:
    """Byte offsets of the whole pages before and after a tensor."""
    page = mmap.PAGESIZE
    behind = slot.offset + slot.span * slot.itemsize
    for first, end in ((slot.start, slot.offset), (behind, slot.end)):
        whole = -(-first // page) * page, end // page * page
        if whole[0] < whole[1]:
            yield whole


def protect(memory: mmap.mmap, slots: Iterable[Slot]) -> None:
    """Make tensors read-only for this process; OSError where the kernel refuses."""
    for slot in slots:
        _change(memory, slot, _READ)


def unprotect(memory: mmap.mmap, slots: Iterable[Slot]) -> None:
    """Make them writable again."""
    for slot in slots:
        _change(memory, slot, _READ | _WRITE)


def _change(memory: mmap.mmap, slot: Slot, rights: int) -> None:
    page = mmap.PAGESIZE
    first = slot.offset // page * page
    end = -(-(slot.offset + slot.span * slot.itemsize) // page) * page
    _change_range(memory, first, min(end, -(-len(memory) // page) * page), rights)


def _change_range(memory: mmap.mmap, first: int, end: int, rights: int) -> None:
    window = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(window)
    del window  # it would keep the memory from being closed
    library = ctypes.CDLL(None, use_errno=True)
    if library.mprotect(ctypes.c_void_p(address + first), ctypes.c_size_t(end - first), rights) != 0:
        raise OSError(ctypes.get_errno(), f"mprotect of {end - first} bytes")
