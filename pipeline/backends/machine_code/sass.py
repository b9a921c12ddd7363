"""The instructions of NVIDIA machine code. In: a cubin. Out: static counts by class, of matrix ones by name.

Disassembling costs nvdisasm 0.25 s whatever the size, as much as compiling; so the classes are read from the
binary: from sm_70 on an instruction has 16 bytes and its operation stands in the lowest 9 bits. The table was
read off nvdisasm's output (-hex) for sm_80, sm_89, sm_90 and sm_100, the tests compare the two, and a cubin
that holds anything else goes to nvdisasm after all.
"""

import re
import subprocess
from array import array
from collections import Counter
from pathlib import Path

from pipeline.backends.machine_code.elf import code_sections
from pipeline.backends.machine_code.nvidia_tools import tools
from pipeline.records.errors import ToolchainError
from pipeline.records.record import Record

# Class -> mnemonic -> operation codes.
TABLE: dict[str, dict[str, tuple[int, ...]]] = {
    "matrix": {
        "HMMA": (0x03C,), "IMMA": (0x037,), "QMMA": (0x07A,), "DMMA": (), "OMMA": (),
        "HGMMA": (0x1F0,), "IGMMA": (0x1F1,), "QGMMA": (0x1F3,), "BGMMA": (),
        "UTCHMMA": (0x1EA,), "UTCQMMA": (0x1EA,), "UTCIMMA": (), "UTCOMMA": (),
    },
    "fma": {
        "FFMA": (0x023,), "FFMA2": (0x049,), "FHFMA": (0x023,), "HFMA2": (0x031, 0x035), "DFMA": (0x02B,),
    },
    "float": {
        "FADD": (0x021,), "FADD2": (0x04B,), "FHADD": (0x021,), "FMUL": (0x020,), "FMUL2": (0x04A,),
        "FMNMX": (0x009,), "FMNMX3": (0x076,), "FSEL": (0x008,), "FSETP": (0x00B,), "FCHK": (0x102,),
        "HADD2": (0x030,), "HMUL2": (), "HMNMX2": (0x040,), "DADD": (0x029,), "DMUL": (0x028,),
        "DSETP": (0x02A,),
    },
    "special": {"MUFU": (0x108,)},
    "convert": {
        "F2F": (0x110,), "F2FP": (0x03E,), "F2I": (0x105,), "I2F": (0x106, 0x112), "I2FP": (0x045,),
        "FRND": (0x107,),
    },
    "integer": {
        "IADD3": (0x010,), "IMAD": (0x024, 0x025, 0x027), "IABS": (0x013,), "IMNMX": (0x017,),
        "ISETP": (0x00C,),
        "LEA": (0x011,), "LOP3": (0x012,), "SHF": (0x019,), "SGXT": (0x01A,), "POPC": (0x109,),
        "VIADD": (0x036,),
        "VIMNMX": (0x048,), "VIADDMNMX": (0x046,), "UIADD3": (0x090, 0x097), "UIMAD": (0x0A4, 0x0A5),
        "UISETP": (0x08C,), "ULEA": (0x091,), "ULOP3": (0x092,), "USHF": (0x099,), "USGXT": (0x09A,),
        "UFLO": (0x0BD,),
    },
    "load_global": {"LDG": (0x181,)},
    "store_global": {"STG": (0x186,)},
    "load_shared": {"LDS": (0x184,), "LDSM": (0x03B,)},
    "store_shared": {"STS": (0x188,), "STSM": (0x044,)},
    "async_copy": {"LDGSTS": (0x1AE,)},
    "tma": {"UTMALDG": (0x1B4,), "UTMASTG": (0x1B5,)},
    "tensor_memory": {"LDTM": (0x1EE,), "STTM": (0x1ED,)},
    "atomic": {"ATOMG": (0x1A3, 0x1A8, 0x1A9), "ATOMS": (0x18C,), "RED": (), "ATOM": ()},
    "shuffle": {"SHFL": (0x189,), "REDUX": (0x1C4,), "CREDUX": (0x0CC,), "VOTE": (0x006,), "VOTEU": (0x086,)},
    "barrier": {"BAR": (0x11D,), "SYNCS": (0x1A7, 0x1B1, 0x1B2), "UTCBAR": (0x1E9,)},
    # for copies and matrix products in flight
    "wait": {"DEPBAR": (0x11A,), "LDGDEPBAR": (0x1AF,), "WARPGROUP": (0x1C5,)},
    "fence": {"MEMBAR": (0x192,), "FENCE": (0x1C6,), "ERRBAR": (0x1AB,), "CGAERRBAR": (0x1AB,)},
    "local": {"LDL": (0x183,), "STL": (0x187,)},
    "branch": {
        "BRA": (0x147,), "CALL": (0x144,), "RET": (0x150,), "EXIT": (0x14D,), "BSSY": (0x145,),
        "BSYNC": (0x141,),
        "BREAK": (0x142,), "WARPSYNC": (0x148,),
    },
    "other": {
        "MOV": (0x002,), "P2R": (0x003,), "R2P": (0x004,), "CS2R": (0x005,), "SEL": (0x007,),
        "PRMT": (0x016,),
        "PLOP3": (0x01C,), "ELECT": (0x02F,), "UVIRTCOUNT": (0x04C,), "UMOV": (0x082,), "USEL": (0x087,),
        "UPLOP3": (0x09C,), "ULDC": (0x0B9,), "R2UR": (0x0CA, 0x1C2), "S2R": (0x119,), "S2UR": (0x1C3,),
        "CCTL": (0x140, 0x18F), "BPT": (0x15C,), "NANOSLEEP": (0x15D,), "LDC": (0x182,), "LDCU": (0x1AC,),
        "UTMACMDFLUSH": (0x1B7,), "UTMACCTL": (0x1B9,),
        "UTCATOMSWS": (0x1E3,),
    },
    "": {"NOP": (0x118,)},  # padding, not counted
}  # fmt: skip

# Two matrix instructions of sm_100 share an operation and differ in bits 72 to 74.
_UTC_MMA = 0x1EA
_UTC_KINDS = {0: "UTCHMMA", 3: "UTCQMMA"}

_CLASS_OF_CODE = {code: kind for kind, names in TABLE.items() for codes in names.values() for code in codes}
_CLASS_OF_NAME = {name: kind for kind, names in TABLE.items() for name in names}
_MATRIX_OF_CODE = {
    code: name for name, codes in TABLE["matrix"].items() for code in codes if code != _UTC_MMA
}
_WIDE = {"load_global", "store_global"}
_WIDTHS = {0: 8, 1: 8, 2: 16, 3: 16, 4: 32, 5: 64, 6: 128}  # bits 73 to 75 of LDG and STG -> bits a thread
_LINE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Z0-9]*)([.\w]*)")


class _UnknownOperation(Exception):
    """The table does not know an instruction."""


class InstructionCounts(Record, frozen=True, kw_only=True):
    """Static counts."""

    classes: dict[str, int]
    """By class; loads and stores of global memory by width in bits (`load_global_128`)."""
    matrix: dict[str, int]
    """Matrix instructions by name, without modifiers."""


def count(cubin: Path) -> InstructionCounts:
    """Count from the machine code, or from its disassembly where the table ends; raises ToolchainError."""
    try:
        return read_binary(cubin.read_bytes())
    except _UnknownOperation:
        return read_text(disassemble(cubin))


def instruction_mix(cubin: Path) -> dict[str, int]:
    """The classes alone."""
    return count(cubin).classes


def read_binary(content: bytes) -> InstructionCounts:
    """Count from the machine code; raises _UnknownOperation where the table ends."""
    counts: Counter[tuple[int, int, int]] = Counter()
    for code in code_sections(content).values():
        words = array("Q", code)
        counts.update(
            (low & 0x1FF, high >> 9 & 7, high >> 8 & 7)
            for low, high in zip(words[0::2], words[1::2], strict=True)
        )
    mix: Counter[str] = Counter()
    matrix: Counter[str] = Counter()
    for (operation, width, form), number in counts.items():
        kind = _CLASS_OF_CODE.get(operation)
        if kind is None or (kind in _WIDE and width not in _WIDTHS):
            raise _UnknownOperation(hex(operation))
        mix[f"{kind}_{_WIDTHS[width]}" if kind in _WIDE else kind] += number
        if kind == "matrix":
            matrix[_matrix_name(operation, form)] += number
    return _counts(mix, matrix)


def _matrix_name(operation: int, form: int) -> str:
    name = _UTC_KINDS.get(form) if operation == _UTC_MMA else _MATRIX_OF_CODE[operation]
    if name is None:
        raise _UnknownOperation(hex(operation))
    return name


def read_text(text: str) -> InstructionCounts:
    """Count from nvdisasm's output; what it names and we do not know is `other`."""
    mix: Counter[str] = Counter()
    matrix: Counter[str] = Counter()
    for name, modifiers in _LINE.findall(text):
        kind = class_of(name, modifiers)
        mix[kind] += 1
        if kind == "matrix":
            matrix[name] += 1
    return _counts(mix, matrix)


def count_text(text: str) -> dict[str, int]:
    """The classes of nvdisasm's output alone."""
    return read_text(text).classes


def class_of(name: str, modifiers: str) -> str:
    """Class of one instruction: `LDG`, `.E.128` -> `load_global_128`; that of padding is empty."""
    kind = _CLASS_OF_NAME.get(name, "other")
    return f"{kind}_{_width(modifiers)}" if kind in _WIDE else kind


def disassemble(cubin: Path, *options: str) -> str:
    """The machine code as text, by the nvdisasm of Triton's wheel; `options` in addition to `-ndf -c`.

    Raises
    ------
    ToolchainError
        nvdisasm is missing or fails; the text says how.
    """
    command = [str(tools() / "nvdisasm"), "-ndf", "-c", *options, str(cubin)]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        raise ToolchainError(f"nvdisasm {cubin.name}: {error.stderr.strip()}") from error
    except OSError as error:
        raise ToolchainError(f"nvdisasm of triton cannot be run: {error}") from error


def _width(modifiers: str) -> int:
    parts = modifiers.split(".")
    return next((int(bits) for bits in re.findall(r"\b[US]?(8|16|64|128|256)\b", " ".join(parts))), 32)


def _counts(mix: Counter[str], matrix: Counter[str]) -> InstructionCounts:
    del mix[""]
    return InstructionCounts(classes=dict(sorted(mix.items())), matrix=dict(sorted(matrix.items())))
