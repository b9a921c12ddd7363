"""Identity of a compiled binary. In: its bytes. Out: a digest of what a device loads of it."""

import struct

from pipeline.backends.machine_code.elf import read_sections
from pipeline.records.record import digest, digest_bytes

_FOR_DEBUGGERS = (".debug_", ".nv_debug_", ".rel.debug_", ".rela.debug_", ".rela.nv_debug_")
_MACHINE = struct.Struct("<16xHHI8x8x8xI")  # type, machine, version, flags: the architecture stands in these


def binary_digest(content: bytes) -> str:
    """Equal for equal code, wherever and whenever it was compiled; of other files than ELF, of their bytes.

    Line tables name the folder of the source and the second in which it was written (DWARF 2, section 6.2.4),
    so that the bytes of two compilations of one source differ: every checkout would verify and measure again
    what another one has measured.
    """
    try:
        sections = read_sections(content)
    except ValueError:
        return digest_bytes(content)
    loaded = [
        [each.name, each.kind, each.flags, each.size, digest_bytes(each.content)]
        for each in sections
        if not each.name.startswith(_FOR_DEBUGGERS)
    ]
    return digest([_MACHINE.unpack_from(content), loaded])
