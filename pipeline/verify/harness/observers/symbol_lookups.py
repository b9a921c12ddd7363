"""Watches a candidate's native code look up functions by name (`dlsym`), which its file does not name.

In: shared objects, right after they were loaded; their pointers to `dlsym` are replaced. Out: the functions
that each found in installed libraries that compute. Machine code can find a function in other ways; those
leave no trace here.
"""

import _ctypes
import ctypes
import mmap
import os
import re
import struct
from collections import defaultdict
from pathlib import Path
from typing import Any

from pipeline.verify.harness.observers.native_code import is_c_library, is_installed, pointers

_C = ctypes.CDLL(None, use_errno=True)
_C.dlsym.restype = ctypes.c_void_p
_C.dlsym.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_Lookup = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_READ, _READ_WRITE = mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE
_SCOPES = (None, ctypes.c_void_p(-1).value)  # RTLD_DEFAULT and RTLD_NEXT depend on who asks


class _Place(ctypes.Structure):
    """`Dl_info`."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


class SymbolLookups:
    """What was looked up, by the file that did."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, None]] = defaultdict(dict)
        self._replacements: dict[str, Any] = {}

    def watch(self, path: str) -> None:
        """Watch a library that is loaded; nothing where it is installed or does not import `dlsym`."""
        path = str(Path(path).resolve()) if path else ""
        if path in self._replacements or is_installed(path):
            return
        try:
            offsets = pointers(Path(path).read_bytes(), b"dlsym")
            base = _loaded_at(path)
            if not offsets or base is None:
                return
            replacement = self._replacements[path] = _Lookup(self._lookup(path))
            for offset in offsets:
                _replace(base + offset, ctypes.cast(replacement, ctypes.c_void_p).value or 0)
        except (OSError, ValueError, struct.error, IndexError):
            return  # a library that cannot be read was loaded all the same

    def found(self, path: str) -> tuple[str, ...]:
        """`library:function`, each once."""
        return tuple(self._found[path])

    def _lookup(self, path: str) -> Any:
        def look(handle: int | None, name: bytes) -> int | None:
            own = _ctypes.dlopen(path, os.RTLD_NOLOAD | os.RTLD_LAZY)
            address: int | None = _C.dlsym(own if handle in _SCOPES else handle, name)
            _ctypes.dlclose(own)
            library = _library_of(address)
            if library and is_installed(library) and not is_c_library(library):
                self._found[path][f"{Path(library).name}:{name.decode(errors='replace')}"] = None
            return address

        return look


def _loaded_at(path: str) -> int | None:
    """Where the first byte of a file is mapped."""
    pattern = rf"^([0-9a-f]+)-\S+ \S+ 00000000 \S+ \S+ +{re.escape(path)}$"
    match = re.search(pattern, Path("/proc/self/maps").read_text(errors="replace"), re.MULTILINE)
    return int(match[1], 16) if match else None


def _library_of(address: int | None) -> str:
    place = _Place()
    if not address or not _C.dladdr(ctypes.c_void_p(address), ctypes.byref(place)):
        return ""
    return (place.file or b"").decode(errors="replace")


def _replace(slot: int, pointer: int) -> None:
    """Write a pointer of the loaded file; the page is read-only again where it was."""
    page = slot & -mmap.PAGESIZE
    was = _READ_WRITE if _is_writable(page) else _READ
    _protect(page, _READ_WRITE)
    ctypes.c_void_p.from_address(slot).value = pointer
    _protect(page, was)


def _is_writable(page: int) -> bool:
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        start, _, end = line.partition(" ")[0].partition("-")
        if int(start, 16) <= page < int(end, 16):
            return line.split(" ", 2)[1][1] == "w"
    raise ValueError(f"{page:#x} is not mapped")


def _protect(page: int, protection: int) -> None:
    if _C.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), protection):
        raise OSError(ctypes.get_errno(), "mprotect")
