"""Read shared objects of 64 bits in the Executable and Linkable Format.

In: the bytes of a file. Out: the names that it imports, and where its pointers to them lie once it is loaded.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

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
