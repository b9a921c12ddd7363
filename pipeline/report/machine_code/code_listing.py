"""Machine code as text of one variant, or of two compared: results with listings in, lines out.

Two instructions are equal if they do the same kind of operation: the registers that the compiler chose, the
address of the code and hints to the scheduler do not count; immediates, widths, modifiers and predication do.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Literal

from pipeline.backends.machine_code.listing import Function, Instruction, Listing, SourceLine
from pipeline.performance.metrics import BINARY_FACTS, configuration
from pipeline.records.record import Record
from pipeline.records.results.collection import Result


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


class SourceTexts:
    """Lines by file name; absent for a file that is not known, or that changed since."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._lines: Mapping[str, list[str]] = {
            file.name: file.read_text(errors="replace").splitlines() for file in files
        }

    def text(self, source: SourceLine) -> str | None:
        """The line without its indentation."""
        lines = self._lines.get(Path(source.file).name, [])
        return lines[source.line - 1].strip() if 0 < source.line <= len(lines) else None


PROMINENT = ("matrix", "dot", "local", "vector_stack")
"""Classes for whose sake a line is shown, however few instructions it has."""


class LineCount(Record, frozen=True, kw_only=True):
    """One source line."""

    source: SourceLine | None
    """None for instructions that no line is to blame for."""
    instructions: int
    classes: dict[str, int]
    """Class -> count, the prominent ones first, then the most frequent; `all` left out."""


def line_counts(listings: Sequence[Listing]) -> tuple[LineCount, ...]:
    """Every source line with its instructions, the one with the most first."""
    totals: Counter[SourceLine | None] = Counter()
    classes: dict[SourceLine | None, Counter[str]] = {}
    for listing in listings:
        for each in listing.instructions:
            totals[each.source] += 1
            classes.setdefault(each.source, Counter()).update(name for name in each.classes if name != "all")
    return tuple(
        LineCount(source=source, instructions=count, classes=_ordered(classes[source]))
        for source, count in totals.most_common()
    )


def shown_lines(counts: Sequence[LineCount], most: int) -> tuple[LineCount, ...]:
    """The first `most` lines, and of the others those with prominent instructions."""
    return tuple(
        count
        for place, count in enumerate(counts)
        if place < most or any(name in count.classes for name in PROMINENT)
    )


def _ordered(classes: Counter[str]) -> dict[str, int]:
    order = sorted(classes, key=lambda name: (name not in PROMINENT, -classes[name], name))
    return {name: classes[name] for name in order}


CONTEXT = 3  # equal instructions shown around a difference
_SIGNS = {"both": " ", "first": "-", "second": "+"}


def heading(result: Result) -> str:
    """`matmul triton on h200 (sm_90), llama3_8b_prefill bfloat16: BLOCK_M=64 …`."""
    task = result.task
    return (
        f"{task.kernel} {result.variant.implementation} on {task.hardware} ({result.architecture}), "
        f"{task.workload} {task.dtype}: {configuration(result)}"
    )


def identity(result: Result) -> Iterator[str]:
    """How to name it again, and where its files are."""
    assert result.compiled is not None
    yield f"variant {result.id}"
    yield f"folder  {result.folder('compile')}"
    yield f"files   {', '.join(result.compiled.files)}"


def fact_values(result: Result) -> Iterator[tuple[str, str, str]]:
    """(column, value, unit) of every fact that is not absent."""
    for column in BINARY_FACTS:
        value = column.value(result)
        if value is not None:
            text = f"{value:.3g}" if isinstance(value, float) else str(value)
            yield column.name, text, column.unit


def facts_lines(result: Result) -> Iterator[str]:
    """All facts, then the instruction mix."""
    assert result.compiled is not None
    yield from _columns(_with_units(result))
    yield "instructions (static count by class)"
    counts = result.compiled.facts.instructions
    yield from _columns({name: str(count) for name, count in counts.items()})


def hot_lines(counts: Sequence[LineCount], texts: SourceTexts, most: int) -> Iterator[str]:
    """The source lines with the most instructions."""
    total = sum(count.instructions for count in counts)
    yield f"source lines by instructions (static, of {total}; not by time)"
    for count in shown_lines(counts, most):
        where = count.source.short if count.source else "no line"
        classes = ", ".join(f"{name} {number}" for name, number in count.classes.items())
        yield f"  {count.instructions:5d}  {where:24}  {classes}"
        text = texts.text(count.source) if count.source else None
        if text:
            yield f"         {'':24}  | {text}"


def listing_lines(listing: Listing, texts: SourceTexts) -> Iterator[str]:
    """The code, with the source line wherever it changes."""
    yield f"{listing.file}: {listing.command}"
    if listing.without_lines:
        yield f"no source lines: {listing.without_lines}"
    for function in listing.functions:
        yield f"{function.name}:"
        last: SourceLine | None = None
        for each in function.instructions:
            if each.label:
                yield f"{each.label}:"
            if each.source is not None and each.source != last:
                yield f"  # {_place(each)}  {texts.text(each.source) or ''}".rstrip()
            last = each.source
            address = f"{each.address:06x}" if each.address is not None else ""
            yield f"    {address:8}{_classes(each):18} {each.text}"


def fact_differences(first: Result, second: Result) -> Iterator[str]:
    """Facts, then instruction classes, that differ."""
    assert first.compiled is not None and second.compiled is not None
    yield from _two_columns("facts", _with_units(first), _with_units(second))
    left, right = first.compiled.facts.instructions, second.compiled.facts.instructions
    names = [*left, *(name for name in right if name not in left)]
    yield from _two_columns(
        "instructions (static count by class)",
        {name: str(left.get(name, 0)) for name in names},
        {name: str(right.get(name, 0)) for name in names},
    )


def line_differences(first: Sequence[LineCount], second: Sequence[LineCount]) -> Iterator[str]:
    """Source lines whose instructions differ in number or class, the largest change first."""
    left, right = ({count.source: count for count in counts} for counts in (first, second))
    changed = [
        source
        for source in dict.fromkeys((*left, *right))
        if _classes_of(left.get(source)) != _classes_of(right.get(source))
    ]
    changed.sort(key=lambda source: -abs(_number(left.get(source)) - _number(right.get(source))))
    yield f"source lines that differ (of {len({*left, *right})})"
    for source in changed:
        before, after = _classes_of(left.get(source)), _classes_of(right.get(source))
        classes = ", ".join(
            f"{name} {before.get(name, 0)} -> {after.get(name, 0)}"
            for name in dict.fromkeys((*before, *after))
            if before.get(name) != after.get(name)
        )
        numbers = f"{_number(left.get(source)):4d} -> {_number(right.get(source)):4d}"
        yield f"  {numbers}  {source.short if source else 'no line':24}  {classes}"


def difference_lines(found: FunctionDifference) -> Iterator[str]:
    """One function as a unified difference; equal runs are cut to their ends."""
    name = found.first if found.first == found.second else f"{found.first} -> {found.second}"
    if {run.side for run in found.runs} <= {"both"}:
        yield f"{name}: equal ({found.count('both')} instructions, apart from registers and addresses)"
        return
    yield (
        f"{name}: {found.count('both')} instructions equal, {found.count('first')} only in the first, "
        f"{found.count('second')} only in the second"
    )
    for place, run in enumerate(found.runs):
        yield from _run_lines(run, before=place > 0, after=place < len(found.runs) - 1)


def _classes_of(count: LineCount | None) -> dict[str, int]:
    return count.classes if count else {}


def _number(count: LineCount | None) -> int:
    return count.instructions if count else 0


def _run_lines(run: InstructionRun, *, before: bool, after: bool) -> Iterator[str]:
    head = CONTEXT if before else 0
    tail = CONTEXT if after else 0
    if run.side != "both" or len(run.instructions) <= head + tail + 1:
        yield from (_signed(run.side, each) for each in run.instructions)
        return
    yield from (_signed("both", each) for each in run.instructions[:head])
    yield f"@@ {len(run.instructions) - head - tail} equal instructions @@"
    if tail:
        yield from (_signed("both", each) for each in run.instructions[-tail:])


def _signed(side: str, each: Instruction) -> str:
    where = each.source.short if each.source else ""
    return f"{_SIGNS[side]} {where:24} {each.text}"


def _place(each: Instruction) -> str:
    """The line that it counts for, and the one in a library that was inlined there."""
    assert each.source is not None
    inner = "" if each.frames[0] == each.source else f" (inlined {each.frames[0].short})"
    return f"{each.source.short}{inner}"


def _classes(each: Instruction) -> str:
    return ",".join(name for name in each.classes if name != "all")


def _with_units(result: Result) -> dict[str, str]:
    return {
        name: value if unit == name else f"{value} {unit}".strip()
        for name, value, unit in fact_values(result)
    }


def _columns(values: Mapping[str, str]) -> Iterator[str]:
    width = max(map(len, values), default=0)
    for name, value in values.items():
        yield f"  {name:{width}}  {value}"


def _two_columns(title: str, left: Mapping[str, str], right: Mapping[str, str]) -> Iterator[str]:
    names = [name for name in (*left, *right) if left.get(name) != right.get(name)]
    differing = list(Counter(names))
    if not differing:
        yield f"{title}: equal"
        return
    yield f"{title} that differ"
    width = max(map(len, differing))
    other = max(len(left.get(name, "–")) for name in differing)
    for name in differing:
        yield f"  {name:{width}}  {left.get(name, '–'):>{other}}  ->  {right.get(name, '–')}"
