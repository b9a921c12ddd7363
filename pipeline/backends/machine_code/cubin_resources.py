"""Resources of NVIDIA kernels, whichever compiler wrote them. In: a cubin's bytes. Out: resources by kernel.

A cubin states registers and stack as attributes of the section `.nv.info`, barriers in `.nv.info.<kernel>`
or, in the format before CUDA 13, in the flags of the kernel's code section. NVIDIA documents neither; names
and meanings are those that `cuobjdump -elf` prints; the tests compare with `--dump-resource-usage`.
"""

import struct
from collections.abc import Iterator

from pipeline.backends.machine_code.elf import ElfSection, read_sections, symbols
from pipeline.records.record import Record

_STRUCTURED = 4  # EIFMT_SVAL: the two bytes after the attribute are the length of its value
_FRAME_SIZE = 0x11  # EIATTR_FRAME_SIZE: symbol, bytes
_PARAMETER = 0x17  # EIATTR_KPARAM_INFO: index, ordinal and offset, size
_REGISTER_COUNT = 0x2F  # EIATTR_REGCOUNT: symbol, registers
_BARRIERS = 0x4C  # EIATTR_NUM_BARRIERS: count in the byte after the attribute
_BARRIER_FLAGS = 20, 0x7F  # SHF_BARRIERS: shift and mask in the flags of a code section
_CODE, _SHARED, _INFO = ".text.", ".nv.shared.", ".nv.info."
_RESERVED = 1024  # bytes of shared memory that the system takes for itself, where this section exists
_RESERVED_SECTION = ".nv.shared.reserved.0"


class KernelResources(Record, frozen=True, kw_only=True):
    """What one kernel needs, as its cubin states it."""

    registers: int | None
    """Per thread."""
    stack_frame: int | None
    """Bytes of local memory per thread in the kernel's own frame: spills, and arrays indexed at run time."""
    static_shared: int
    """Bytes per block, from sm_90 on with the 1 KiB that CUDA reserves; what a launch adds is not here."""
    reserved_shared: int
    """Bytes of these that CUDA reserves."""
    barriers: int
    """Hardware barriers that a block reserves."""
    parameters: tuple[int, ...]
    """Bytes of each parameter, in order."""
    code_bytes: int


def kernel_resources(content: bytes) -> dict[str, KernelResources]:
    """Kernel -> its resources.

    Raises
    ------
    ValueError
        Not a little-endian 64-bit ELF file.
    """
    sections = read_sections(content)
    by_name = {section.name: section for section in sections}
    names = [symbol.name for symbol in symbols(sections)]
    stated: dict[tuple[int, str], int] = {}
    if ".nv.info" in by_name:
        for attribute, _, value in _attributes(by_name[".nv.info"].content):
            if attribute in (_FRAME_SIZE, _REGISTER_COUNT):
                symbol, number = struct.unpack("<II", value[:8])
                stated[(attribute, names[symbol])] = number
    found = {}
    for section in sections:
        kernel = section.name.removeprefix(_CODE)
        if section.name.startswith(_CODE):
            shared = by_name.get(_SHARED + kernel)
            info = by_name.get(_INFO + kernel)
            found[kernel] = KernelResources(
                registers=stated.get((_REGISTER_COUNT, kernel)),
                stack_frame=stated.get((_FRAME_SIZE, kernel)),
                static_shared=shared.size if shared else 0,
                reserved_shared=_RESERVED if shared and _RESERVED_SECTION in by_name else 0,
                barriers=_barriers(section, info),
                parameters=_parameters(info),
                code_bytes=section.size,
            )
    return found


def _barriers(code: ElfSection, info: ElfSection | None) -> int:
    for attribute, short, _ in _attributes(info.content if info else b""):
        if attribute == _BARRIERS:
            return short & 0xFF
    shift, mask = _BARRIER_FLAGS
    return code.flags >> shift & mask


def _parameters(info: ElfSection | None) -> tuple[int, ...]:
    """Index, ordinal, offset; the size stands in the upper bits of the last word."""
    fields = [
        struct.unpack("<IHHI", value)
        for attribute, _, value in _attributes(info.content if info else b"")
        if attribute == _PARAMETER
    ]
    return tuple(last >> 18 for _, _, _, last in sorted(fields, key=lambda each: each[1]))


def _attributes(content: bytes) -> Iterator[tuple[int, int, bytes]]:
    """(attribute, its two bytes, its value) of every entry."""
    place = 0
    while place + 4 <= len(content):
        form, attribute, short = struct.unpack_from("<BBH", content, place)
        place += 4
        length = short if form == _STRUCTURED else 0
        yield attribute, short, content[place : place + length]
        place += length
