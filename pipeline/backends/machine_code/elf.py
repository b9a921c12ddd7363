"""The machine code in an ELF file, which cubins and AMD's code objects are."""

import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_EXECUTABLE = 0x4  # SHF_EXECINSTR


def code_sections(content: bytes) -> dict[str, bytes]:
    """Name -> bytes of every executable section (`.text.<kernel>` in a cubin).

    Raises
    ------
    ValueError
        Not a little-endian 64-bit ELF file.
    """
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a little-endian 64-bit ELF file")
    header = _HEADER.unpack_from(content)
    start, count, names_index = header[6], header[12], header[13]
    sections = [_SECTION.unpack_from(content, start + number * _SECTION.size) for number in range(count)]
    names = sections[names_index][4]
    found = {}
    for name, _, flags, _, offset, size, *_ in sections:
        if flags & _EXECUTABLE:
            end = content.index(b"\0", names + name)
            found[content[names + name : end].decode()] = content[offset : offset + size]
    return found
