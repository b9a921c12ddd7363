"""The sections, symbols and machine code in an ELF file, which cubins and AMD's code objects are."""

import struct
from collections.abc import Iterator

from pipeline.records.record import Record

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_EXECUTABLE = 0x4  # SHF_EXECINSTR
_NO_BITS = 8  # SHT_NOBITS
_SYMBOL_TABLE = 2  # SHT_SYMTAB
_FUNCTION = 2  # STT_FUNC


class ElfSection(Record, frozen=True, kw_only=True):
    """One section header and what it names (System V ABI, chapter 4)."""

    name: str
    kind: int
    flags: int
    size: int
    """Bytes; of a section without content (SHT_NOBITS) what it takes in memory."""
    link: int
    content: bytes


class Symbol(Record, frozen=True, kw_only=True):
    """One entry of the symbol table."""

    name: str
    function: bool
    section: int
    size: int


def read_sections(content: bytes) -> tuple[ElfSection, ...]:
    """All sections, in the order of their headers.

    Raises
    ------
    ValueError
        Not a little-endian 64-bit ELF file.
    """
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a little-endian 64-bit ELF file")
    header = _HEADER.unpack_from(content)
    start, count, names_index = header[6], header[12], header[13]
    headers = [_SECTION.unpack_from(content, start + number * _SECTION.size) for number in range(count)]
    names = headers[names_index][4]
    return tuple(
        ElfSection(
            name=_text(content, names + name),
            kind=kind,
            flags=flags,
            size=size,
            link=link,
            content=b"" if kind == _NO_BITS else content[offset : offset + size],
        )
        for name, kind, flags, _, offset, size, link, *_ in headers
    )


def code_sections(content: bytes) -> dict[str, bytes]:
    """Name -> bytes of every executable section (`.text.<kernel>`); raises as `read_sections` does."""
    return {
        section.name: section.content for section in read_sections(content) if section.flags & _EXECUTABLE
    }


def symbols(sections: tuple[ElfSection, ...]) -> tuple[Symbol, ...]:
    """The symbol table, in its order: other sections name symbols by their place in it."""
    return tuple(
        Symbol(
            name=_text(sections[table.link].content, name),
            function=info & 0xF == _FUNCTION,
            section=section,
            size=size,
        )
        for table in sections
        if table.kind == _SYMBOL_TABLE
        for name, info, _, section, _, size in _entries(table)
    )


def _entries(table: ElfSection) -> Iterator[tuple[int, ...]]:
    yield from _SYMBOL.iter_unpack(table.content)


def _text(content: bytes, start: int) -> str:
    return content[start : content.index(b"\0", start)].decode()
