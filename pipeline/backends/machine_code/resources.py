"""What a kernel in a cubin takes of a multiprocessor. In: the cubin and a kernel's name. Out: its resources.

They stand in the sections `.nv.info` (of all kernels) and `.nv.info.<kernel>`, as attributes whose numbers
`cuobjdump -elf` names (EIATTR_…); the tests compare the result with `cuobjdump --dump-resource-usage`.
"""

import struct
from collections.abc import Iterator

from pipeline.backends.machine_code.elf import Section, sections
from pipeline.records.record import Record

_FRAME_SIZE, _PARAMETER, _REGISTERS, _BARRIERS = 0x11, 0x17, 0x2F, 0x4C
_SIZED = 4  # EIFMT_SVAL: the two bytes of the value are the length of what follows
_SYMBOL_BITS = 24  # of a code section's info; before sm_90 its registers stand above
_RESERVED = 1024  # bytes of shared memory that the system takes for itself, counted where this section exists
_RESERVED_SECTION = ".nv.shared.reserved.0"
_CODE = ".text."


class KernelResources(Record, frozen=True, kw_only=True):
    """Of one kernel."""

    registers: int
    """Per thread."""
    local_memory: int
    """Bytes of stack per thread: spills, and arrays that are indexed at run time."""
    shared_memory: int
    """Bytes of static shared memory, without what the system reserves."""
    barriers: int
    """That a block reserves."""
    parameters: tuple[int, ...]
    """Bytes of each parameter, in order."""


def kernels_of(cubin: bytes) -> tuple[str, ...]:
    """Names of the kernels in it, sorted."""
    return tuple(
        sorted(
            section.name.removeprefix(_CODE)
            for section in sections(cubin)
            if section.executable and section.name.startswith(_CODE)
        )
    )


def read_resources(cubin: bytes, kernel: str) -> KernelResources:
    """Resources of one kernel.

    Raises
    ------
    KeyError
        There is no such kernel in it, or no count of its registers.
    """
    found = {section.name: section for section in sections(cubin)}
    symbol = found[_CODE + kernel].info & ((1 << _SYMBOL_BITS) - 1)
    counts = {
        attribute: number
        for attribute, value in _attributes(found[".nv.info"])
        if len(value) == 8
        for of, number in [struct.unpack("<II", value)]
        if of == symbol
    }
    own = list(_attributes(found[f".nv.info.{kernel}"]))
    barriers = [value[0] for attribute, value in own if attribute == _BARRIERS]
    return KernelResources(
        registers=counts[_REGISTERS],
        local_memory=counts.get(_FRAME_SIZE, 0),
        shared_memory=_static_shared(found, kernel),
        barriers=barriers[0] if barriers else 0,
        parameters=_parameters(value for attribute, value in own if attribute == _PARAMETER),
    )


def _static_shared(found: dict[str, Section], kernel: str) -> int:
    section = found.get(f".nv.shared.{kernel}")
    if section is None:
        return 0
    return section.size - (_RESERVED if _RESERVED_SECTION in found else 0)


def _parameters(values: Iterator[bytes]) -> tuple[int, ...]:
    """Index, ordinal, offset; the size stands in the upper bits of the last word."""
    fields = [struct.unpack("<IHHI", value) for value in values]
    return tuple(last >> 18 for _, _, _, last in sorted(fields, key=lambda each: each[1]))


def _attributes(section: Section) -> Iterator[tuple[int, bytes]]:
    """(attribute, value) of every entry."""
    position = 0
    while position < len(section.content):
        form, attribute, value = struct.unpack_from("<BBH", section.content, position)
        position += 4
        if form == _SIZED:
            yield attribute, section.content[position : position + value]
            position += value
        else:
            yield attribute, struct.pack("<H", value)
