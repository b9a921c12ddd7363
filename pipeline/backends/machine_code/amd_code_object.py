"""Resources of AMD kernels from the code object. In: the bytes of a `.hsaco`. Out: resources by kernel.

The metadata is the note NT_AMDGPU_METADATA, a MessagePack map (LLVM, docs/AMDGPUUsage.rst, "Code Object V5
Metadata"); the code's size is that of the kernel's symbol.
"""

import struct
from collections.abc import Iterator

import msgspec

from pipeline.backends.machine_code.elf import read_sections, symbols
from pipeline.records.record import Record

_NOTE = 7  # SHT_NOTE
_METADATA = 32  # NT_AMDGPU_METADATA
_OWNER = b"AMDGPU\0"


class _Kernel(msgspec.Struct, frozen=True):
    """The keys that we read of one kernel; there are more."""

    name: str = msgspec.field(name=".name")
    vector_registers: int = msgspec.field(name=".vgpr_count")
    scalar_registers: int = msgspec.field(name=".sgpr_count")
    private_memory: int = msgspec.field(name=".private_segment_fixed_size")
    group_memory: int = msgspec.field(name=".group_segment_fixed_size")
    spilled_vector_registers: int = msgspec.field(name=".vgpr_spill_count", default=0)


class _Metadata(msgspec.Struct, frozen=True):
    kernels: tuple[_Kernel, ...] = msgspec.field(name="amdhsa.kernels")


class KernelMetadata(Record, frozen=True, kw_only=True):
    """What one kernel needs, as its code object states it."""

    registers: int
    """Vector registers per lane: architectural ones and, where the file is unified, accumulation ones."""
    scalar_registers: int
    """Per wave."""
    spilled_registers: int
    """Vector registers that were spilled to scratch memory."""
    private_memory: int
    """Bytes of scratch memory per lane."""
    group_memory: int
    """Bytes of LDS per workgroup that the code object fixes; a launch may add to it."""
    code_bytes: int


def kernel_metadata(content: bytes) -> dict[str, KernelMetadata]:
    """Kernel -> its resources.

    Raises
    ------
    ValueError
        Not a little-endian 64-bit ELF file, or one without AMD's metadata.
    """
    sections = read_sections(content)
    sizes = {symbol.name: symbol.size for symbol in symbols(sections) if symbol.function}
    notes = [section.content for section in sections if section.kind == _NOTE]
    for owner, kind, description in (entry for note in notes for entry in _notes(note)):
        if owner == _OWNER and kind == _METADATA:
            metadata = msgspec.msgpack.decode(description, type=_Metadata)
            return {kernel.name: _resources(kernel, sizes) for kernel in metadata.kernels}
    raise ValueError("no note NT_AMDGPU_METADATA: not a code object of AMD's")


def _resources(kernel: _Kernel, sizes: dict[str, int]) -> KernelMetadata:
    return KernelMetadata(
        registers=kernel.vector_registers,
        scalar_registers=kernel.scalar_registers,
        spilled_registers=kernel.spilled_vector_registers,
        private_memory=kernel.private_memory,
        group_memory=kernel.group_memory,
        code_bytes=sizes[kernel.name],
    )


def _notes(content: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """(owner, type, description) of every note; both texts are padded to four bytes."""
    place = 0
    while place + 12 <= len(content):
        owner_size, size, kind = struct.unpack_from("<III", content, place)
        start = place + 12 + -(-owner_size // 4) * 4
        yield content[place + 12 : place + 12 + owner_size], kind, content[start : start + size]
        place = start + -(-size // 4) * 4
