"""The sections of an ELF file, which cubins and AMD's code objects are."""

import struct

from pipeline.records.record import Record

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_EXECUTABLE = 0x4  # SHF_EXECINSTR
_EMPTY = 8  # SHT_NOBITS: it has a size and no content


class Section(Record, frozen=True, kw_only=True):
    """One section; `size` counts what takes no room in the file as well."""

    name: str
    executable: bool
    info: int
    size: int
    content: bytes


def sections(content: bytes) -> tuple[Section, ...]:
    """All sections, in the file's order.

    Raises
    ------
    ValueError
        Not a little-endian 64-bit ELF file.
    """
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a little-endian 64-bit ELF file")
    header = _HEADER.unpack_from(content)
    start, count, names_index = header[6], header[12], header[13]
    found = [_SECTION.unpack_from(content, start + number * _SECTION.size) for number in range(count)]
    names = found[names_index][4]
    return tuple(
        Section(
            name=content[names + name : content.index(b"\0", names + name)].decode(),
            executable=bool(flags & _EXECUTABLE),
            info=info,
            size=size,
            content=b"" if kind == _EMPTY else content[offset : offset + size],
        )
        for name, kind, flags, _, offset, size, _, info, *_ in found
    )


def code_sections(content: bytes) -> dict[str, bytes]:
    """Name -> bytes of every executable section (`.text.<kernel>` in a cubin); raises ValueError as above."""
    return {section.name: section.content for section in sections(content) if section.executable}
