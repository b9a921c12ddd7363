"""Machine code in this process: which files are the candidate's own, and what they import.

In: nothing, or a file. Out: mapped files that the candidate built (not the system's, nor an installed
package's); functions of PyTorch or BLAS that they call past the dispatcher, read from the dynamic symbols of
the ELF file.
"""

import functools
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_MAPPED = re.compile(r"^\S+ \S*x\S* \S+ \S+ \S+ +(/.*)$", re.MULTILINE)
_DIRECT = re.compile(
    rb"_ZNK?2at(?:6native|3cpu|27compositeexplicitautograd)(\w+)|(cblas_\w+|[sd]gemm_|dnnl_\w+_execute)$"
)
_REGION = (b"GOMP_parallel", b"__kmpc_fork_call")
_PASSED = ("(deleted)", "/memfd:", "/dev/", "/anon_hugepage", "/SYSV")


def mapped() -> tuple[str, ...]:
    """Files with machine code in this process that no package has installed."""
    found = dict.fromkeys(_MAPPED.findall(Path("/proc/self/maps").read_text(errors="replace")))
    return tuple(path for path in found if path.startswith("/memfd:") or not _is_known(path))


def _is_known(path: str) -> bool:
    """Links are resolved already in the paths that the kernel gives."""
    return path.startswith((*_PASSED, *_SYSTEM, *_prefixes()))


def direct_calls(path: str) -> tuple[str, ...]:
    """Functions of PyTorch or of linear algebra that a shared object imports past the dispatcher."""
    try:
        names = imported(Path(path).read_bytes())
    except (OSError, ValueError, struct.error, IndexError):
        return ()
    found = (_DIRECT.match(name) for name in names)
    return tuple(dict.fromkeys(_readable(match) for match in found if match))


@functools.cache
def starts_threads(path: str) -> bool:
    """Whether a shared object has regions of OpenMP."""
    try:
        return any(name.startswith(_REGION) for name in imported(Path(path).read_bytes()))
    except (OSError, ValueError, struct.error, IndexError):
        return False


def _readable(match: re.Match[bytes]) -> str:
    """`at::native::softmax_cpu` from a mangled name."""
    if match[2]:
        return match[2].decode()
    length = re.match(rb"(\d+)", match[1])
    rest = match[1][length.end() : length.end() + int(length[1])] if length else match[1]
    return f"at::native::{rest.decode(errors='replace')}"


_SYSTEM = ("/lib", "/usr/lib", "/usr/local/cuda", "/opt/")
_C_LIBRARIES = (
    *("libc.", "libm.", "libdl.", "libpthread.", "libgomp.", "librt.", "libstdc++"),
    # Drivers, their run times, and what reads clocks and counts devices: PyTorch calls that by itself.
    *("libcuda", "libcudart", "libnvidia-ml", "libamdhip64", "librocm_smi64", "libamd_smi"),
)


def is_installed(path: str) -> bool:
    """Whether a file belongs to Python, to an installed package or to the system."""
    return not path or str(Path(path).resolve()).startswith((*_SYSTEM, *_prefixes()))


def is_c_library(path: str) -> bool:
    """Whether a library gives a language or a device its run time and computes nothing."""
    return Path(path).name.startswith(_C_LIBRARIES)


@functools.cache
def _prefixes() -> tuple[str, ...]:
    return tuple({str(Path(prefix).resolve()) for prefix in (sys.prefix, sys.base_prefix)})


_RELOCATIONS, _DYNAMIC_SYMBOLS = 4, 11  # SHT_RELA, SHT_DYNSYM
_POINTERS = {6, 7, 1025, 1026}  # R_X86_64_GLOB_DAT, _JUMP_SLOT; R_AARCH64_GLOB_DAT, _JUMP_SLOT


class _Section(NamedTuple):
    kind: int
    offset: int
    size: int
    link: int


def imported(raw: bytes) -> list[bytes]:
    """Undefined symbols; struct.error, ValueError or IndexError where the file is not sound."""
    sections = _sections(raw)
    return [
        name
        for section in sections
        if section.kind == _DYNAMIC_SYMBOLS
        for name, defined in _symbols(raw, sections, section)
        if not defined
    ]


def pointers(raw: bytes, name: bytes) -> list[int]:
    """Offsets from where the file is loaded, of the pointers to an imported function."""
    sections = _sections(raw)
    found = []
    for section in sections:
        if section.kind != _RELOCATIONS or sections[section.link].kind != _DYNAMIC_SYMBOLS:
            continue
        symbols = list(_symbols(raw, sections, sections[section.link]))
        for at in range(section.offset, section.offset + section.size, 24):
            offset, information = struct.unpack_from("<QQ", raw, at)
            if information & 0xFFFFFFFF in _POINTERS and symbols[information >> 32] == (name, False):
                found.append(offset)
    return found


def _sections(raw: bytes) -> list[_Section]:
    if raw[:5] != b"\x7fELF\x02":
        return []
    table, size, count = struct.unpack_from("<Q", raw, 40)[0], *struct.unpack_from("<HH", raw, 58)
    found = []
    for number in range(count):
        _, kind, _, _, offset, length, link, *_ = struct.unpack_from(
            "<IIQQQQIIQQ", raw, table + size * number
        )
        found.append(_Section(kind, offset, length, link))
    return found


def _symbols(raw: bytes, sections: list[_Section], table: _Section) -> Iterator[tuple[bytes, bool]]:
    """Name of each symbol, and whether the file defines it."""
    strings = sections[table.link].offset
    for at in range(table.offset, table.offset + table.size, 24):
        name, _, _, where = struct.unpack_from("<IBBH", raw, at)
        yield raw[strings + name : raw.index(b"\0", strings + name)], where != 0
