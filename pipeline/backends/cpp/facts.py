"""Static facts of a shared object: size of the code from its symbols, the rest from its disassembly.

The classes of the mix overlap: a fused multiply-add on 512-bit registers with a memory operand counts as
`vector_512`, `float_arithmetic`, `fma` and `load`. Counts are static: how often a loop runs is not in them.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipeline.backends.cpp.disassembly import DisassemblyLine, read_lines
from pipeline.backends.cpp.instruction_extensions import extension
from pipeline.records.errors import ToolchainError
from pipeline.records.results.compiled import StaticFacts

_SYMBOL_TABLES = (2, 11)  # SHT_SYMTAB, SHT_DYNSYM
_FUNCTION = 2  # STT_FUNC

# Mnemonics of both instruction sets; a class counts where its pattern matches from the start.
_CLASSES = {
    "float_arithmetic": re.compile(
        r"v?(add|sub|mul|div|sqrt|min|max)[sp][sdh]$|vfn?m(add|sub)"
        r"|f(add|sub|mul|div|sqrt|n?mul|min|max|minnm|maxnm|ml[as]|n?madd|n?msub)$"
    ),
    "fma": re.compile(r"vfn?m(add|sub)|fmla|fmls|fn?madd|fn?msub"),
    "dot": re.compile(r"vdpbf16|vpdp|bfdot|bfmmla|[us]dot"),
    "gather": re.compile(r"vp?gather"),
    "prefetch": re.compile(r"prefetch|prfm"),
    "branch": re.compile(r"j|b\.|b$|cbn?z|tbn?z"),
    "call": re.compile(r"call|bl$|blr"),
    "convert": re.compile(r"v?cvt|vpmov[sz]x|fcvt|[us]cvtf|bfcvt"),
    "divide": re.compile(r"v?div|v?sqrt|fdiv|fsqrt"),
}
_NO_ACCESS = re.compile(r"lea|nop|prefetch|prfm|j|call|b\.|data16|cs$")
_READS_ONLY = re.compile(r"cmp|test|v?ucomis|v?comis|push")
_SCALAR_FLOAT = re.compile(
    r"v?(mov|add|sub|mul|div|sqrt|min|max|u?comi|fn?m\w+\d|rndscale|round|scalef|cvt\w+)s[sd]$"
    r"|v?mov[dq]$|v?cvtt?s[sd]2"
)
# What a function takes from the stack before it computes; what a callee takes is not in it.
_FRAME = re.compile(
    r"sub\s+\$0x(?!f{8})([0-9a-f]+),%rsp|sub\s+sp, sp, #0x([0-9a-f]+)|add\s+\$0x(f{8}[0-9a-f]{8}),%rsp"
)
_PRE_INDEX = re.compile(r"\[sp, #-(\d+)\]!")
_PUSH = 8  # bytes
_ARM_LOAD = re.compile(r"ldr|ldp|ldu|ld[1-4]|ldn")
_ARM_STORE = re.compile(r"str|stp|stu|st[1-4]|stn")


def read_functions(artifact: Path) -> dict[str, int]:
    """Functions that the source defines -> bytes of code. What the linker adds has no size and is left out.

    Raises
    ------
    ToolchainError
        Not a 64-bit ELF file: this backend knows Linux only.
    """
    data = artifact.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ToolchainError(f"{artifact}: not a 64-bit ELF file; the backend cpp needs Linux")
    functions = {}
    for kind, offset, size, names in _symbol_sections(data):
        if kind not in _SYMBOL_TABLES:
            continue
        for name, info, _, section, _, length in struct.iter_unpack("<IBBHQQ", data[offset : offset + size]):
            if info & 0xF == _FUNCTION and section != 0 and length > 0:
                start = names + name
                functions[data[start : data.index(b"\0", start)].decode()] = length
    return functions


def static_facts(functions: dict[str, int], disassembly: str | None) -> StaticFacts:
    """Size and mix of all functions. Registers and spills are not known: no compiler reports them."""
    size = sum(functions.values())
    if disassembly is None:
        return StaticFacts(code_bytes=size)
    lines = read_lines(disassembly, set(functions))
    needed = Counter(name for line in lines if (name := extension(line.mnemonic, line.operands)) is not None)
    return StaticFacts(
        code_bytes=size,
        local_memory=stack_frame(lines),
        extensions=dict(sorted(needed.items())),
        instructions=instruction_mix(lines),
    )


def instruction_mix(lines: Iterable[DisassemblyLine]) -> dict[str, int]:
    """Class -> static count."""
    mix: Counter[str] = Counter()
    for line in lines:
        mix.update(classes_of(line))
    return dict(sorted(mix.items()))


def stack_frame(lines: Iterable[DisassemblyLine]) -> int:
    """Bytes of the largest frame of a function; padding for alignment is not in it."""
    frames: Counter[str] = Counter()
    for line in lines:
        frames[line.function] += _frame_bytes(line.mnemonic, line.operands)
    return max(frames.values(), default=0)


def _frame_bytes(mnemonic: str, operands: str) -> int:
    if mnemonic == "push":
        return _PUSH
    if found := _PRE_INDEX.search(operands):
        return int(found[1])
    found = _FRAME.match(f"{mnemonic} {operands}")
    if found is None:
        return 0
    return int(found[1] or found[2], 16) if not found[3] else (1 << 64) - int(found[3], 16)


def _symbol_sections(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """(type, offset, size, offset of its string table) of every section."""
    table = struct.unpack_from("<Q", data, 0x28)[0]
    size, count = struct.unpack_from("<HH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQII", data, table + number * size) for number in range(count)]
    for _, kind, _, _, offset, length, link, _ in headers:
        yield kind, offset, length, headers[link][4] if link < count else 0


def classes_of(line: DisassemblyLine) -> Iterator[str]:
    """Classes of one instruction; they overlap."""
    mnemonic, operands = line.mnemonic, line.operands
    yield "all"
    for name, pattern in _CLASSES.items():
        if pattern.match(mnemonic):
            yield name
    width = _vector_class(mnemonic, operands)
    if width:
        yield width
    access = _access(mnemonic, operands)
    if access:
        yield access
        if line.on_stack:
            yield "stack"
            if width:
                yield "vector_stack"  # spilled registers, or arrays that did not fit them


def _vector_class(mnemonic: str, operands: str) -> str | None:
    if "%zmm" in operands:
        return "vector_512"
    if "%ymm" in operands:
        return "vector_256"
    if "%xmm" in operands:
        return "scalar_float" if _SCALAR_FLOAT.match(mnemonic) else "vector_128"
    if re.search(r"\bv\d+\.|\bq\d+\b", operands):
        return "vector_128"
    if re.search(r"\bz\d+\.", operands):
        return "vector_scalable"
    return "scalar_float" if re.search(r"(^|[^%\w])[sd]\d+\b", operands) else None


def _access(mnemonic: str, operands: str) -> str | None:
    """`load` or `store`: AT&T syntax writes the destination last."""
    if "[" in operands:
        if _ARM_LOAD.match(mnemonic):
            return "load"
        return "store" if _ARM_STORE.match(mnemonic) else None
    if "(" not in operands or _NO_ACCESS.match(mnemonic):
        return None
    last = re.sub(r"\{[^}]*\}", "", operands).endswith(")")
    several = "," in re.sub(r"\([^)]*\)", "", operands)
    return "store" if last and several and not _READS_ONLY.match(mnemonic) else "load"
