"""How two variants' machine code differs: listings in, functions with their equal and differing runs out.

Two instructions are equal where they do the same kind of thing: which registers the compiler chose, where the
code lies, and hints to the scheduler do not count; immediates, widths, modifiers and predication do.
"""

import difflib
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Literal

from pipeline.backends.machine_code.listing import Function, Instruction, Listing
from pipeline.records.record import Record


def _wide(found: re.Match[str]) -> str:
    """`v[4:7]` -> `v[4]`: how many registers, not which."""
    return f"{found[1]}[{int(found[3]) - int(found[2]) + 1}]"


# (pattern, replacement) in order, for each kind of listing.
_SASS = (
    (re.compile(r"\.reuse\b"), ""),
    (re.compile(r"`\(\.L\w+\)"), "LABEL"),
    (re.compile(r"\b(BRA|CALL|BSSY|WARPSYNC)(\S*)(.*) 0x[0-9a-f]+"), r"\1\2\3 LABEL"),
    (re.compile(r"\b(U?R|U?P|B|SB)\d+\b"), r"\1"),
)
_AMDGCN = (
    (re.compile(r"\.LBB\w+"), "LABEL"),
    (re.compile(r"\b([vsa])\[(\d+):(\d+)\]"), _wide),
    (re.compile(r"\b([vsa])\d+\b"), r"\1"),
)
_CPU = (
    (re.compile(r"^(j\w+|b\S*|cbn?z|tbn?z)(.*?) [0-9a-f]+ <.*>"), r"\1\2 LABEL"),
    (re.compile(r"\b[0-9a-f]+ <([^>+]+)(\+0x[0-9a-f]+)?>"), r"<\1>"),
    (re.compile(r"-?0x[0-9a-f]+\(%rip\)"), "(%rip)"),
    (re.compile(r"%([xyz])mm\d+"), r"%\1mm"),
    (re.compile(r"%k\d"), "%k"),
    (re.compile(r"%r(?!sp|ip)(\d+|[a-ds][ipx]|bp)\b"), "%r64"),
    (re.compile(r"%(r\d+d|e[a-ds][ipx]|ebp)\b"), "%r32"),
    (re.compile(r"%(r\d+w|[a-ds][ipx]|bp)\b"), "%r16"),
    (re.compile(r"%(r\d+b|[a-d][lh]|[sd]il|[sb]pl)\b"), "%r8"),
    (re.compile(r"\b([xwvqdszp])\d+\b"), r"\1"),
)
_RULES = {".cubin": _SASS, ".amdgcn": _AMDGCN, ".so": _CPU}

Side = Literal["both", "first", "second"]


class InstructionRun(Record, frozen=True, kw_only=True):
    """Instructions in a row that are on both sides, or on one."""

    side: Side
    instructions: tuple[Instruction, ...]
    """Of the first variant where they are on both sides."""


class FunctionDifference(Record, frozen=True, kw_only=True):
    """One function of both variants; without a name on the side that lacks it."""

    first: str | None
    second: str | None
    runs: tuple[InstructionRun, ...]

    def count(self, side: Side) -> int:
        """How many instructions are on both sides, or on one only."""
        return sum(len(run.instructions) for run in self.runs if run.side == side)


def normalised(instruction: Instruction, file: str) -> str:
    """What is compared: registers by kind, branches without their targets, no scheduling hints."""
    text = instruction.text
    for pattern, replacement in _RULES[PurePath(file).suffix]:
        text = pattern.sub(replacement, text)
    return text


def differences(first: Sequence[Listing], second: Sequence[Listing]) -> tuple[FunctionDifference, ...]:
    """All functions of both, those of the first in order, then what only the second has."""
    left = [(listing.file, function) for listing in first for function in listing.functions]
    right = [(listing.file, function) for listing in second for function in listing.functions]
    if len(left) == len(right) == 1:  # the one kernel may have another name
        return (_difference(left[0], right[0]),)
    by_name = {function.name: (file, function) for file, function in right}
    found = [_difference(each, by_name.pop(each[1].name, None)) for each in left]
    return (*found, *(_difference(None, each) for each in by_name.values()))


def _difference(
    first: tuple[str, Function] | None, second: tuple[str, Function] | None
) -> FunctionDifference:
    left = first[1].instructions if first else ()
    right = second[1].instructions if second else ()
    matcher = difflib.SequenceMatcher(
        a=[normalised(each, first[0]) for each in left] if first else [],
        b=[normalised(each, second[0]) for each in right] if second else [],
        autojunk=False,  # frequent instructions are no junk
    )
    runs: list[InstructionRun] = []
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind == "equal":
            runs.append(InstructionRun(side="both", instructions=left[start:end]))
            continue
        if end > start:
            runs.append(InstructionRun(side="first", instructions=left[start:end]))
        if other_end > other_start:
            runs.append(InstructionRun(side="second", instructions=right[other_start:other_end]))
    return FunctionDifference(
        first=first[1].name if first else None, second=second[1].name if second else None, runs=tuple(runs)
    )
