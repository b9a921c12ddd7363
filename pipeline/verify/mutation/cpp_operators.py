"""Mutation operators for C++ kernels, on lines of code without comments and strings.

In: the source. Out: edits within one line. Each operator is one function that looks at one line, and one line
in `OPERATORS`. They know the words of C++, OpenMP and `kernels/vector.hpp`; what does not compile is counted.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from pipeline.records.record import Record
from pipeline.verify.mutation.source_edit import Edit, Operator

_HIDDEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.DOTALL | re.MULTILINE
)
_PRAGMA = re.compile(r"^[ \t]*#pragma omp[^\n]*", re.MULTILINE)
_PAIRS = {")": "(", "]": "[", "}": "{"}


class CodeLine(Record, frozen=True, kw_only=True):
    """One line of code."""

    start: int
    """Offset of its first character."""
    text: str
    """Blank where it is no code."""
    source: str
    """Code of the whole file, for what depends on declarations."""


def lines(source: str) -> Iterator[CodeLine]:
    """Lines that hold code."""
    code = _HIDDEN.sub(_blank, source)
    start = 0
    for text in code.split("\n"):
        if text.strip():
            yield CodeLine(start=start, text=text, source=code)
        start += len(text) + 1


def pragmas(source: str) -> Iterator[CodeLine]:
    """The lines that tell OpenMP what to do."""
    for found in _PRAGMA.finditer(source):
        yield CodeLine(start=found.start(), text=found[0], source=source)


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def arguments(text: str, opening: int) -> tuple[list[tuple[int, int]], int] | None:
    """Spans of a call's arguments, and the offset after its closing parenthesis; None where it goes on below.

    `opening` is the offset of its opening parenthesis.
    """
    spans: list[tuple[int, int]] = []
    depth, first = 0, opening + 1
    for at in range(opening, len(text)):
        character = text[at]
        if character in "([{":
            depth += 1
        elif character in _PAIRS:
            depth -= 1
        if (character == "," and depth == 1) or (character == ")" and depth == 0):
            spans.append(_stripped(text, first, at))
            first = at + 1
        if depth == 0:
            return spans, at + 1
    return None


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] == " ":
        start += 1
    while end > start and text[end - 1] == " ":
        end -= 1
    return start, end


_Change = tuple[int, int, str]
Look = Callable[[CodeLine], Iterator[_Change]]
"""A line -> changes (start, end, text), offsets within the line."""

_NAME = r"[A-Za-z_]\w*"
_PLACE = rf"{_NAME}(?:\[[^\]]*\])*"
_FOR = re.compile(r"\bfor \(([^;]*); ([^;]*); ")
_CALL = re.compile(rf"((?:\w+::)*)({_NAME})(?:<[\w:, ]*>)?(\()")
_PARAMETER = re.compile(rf"(?:const )?[\w:]+[*&]? {_NAME}")
_BOUND = re.compile(r"(<=?) ([^;&|]+)$")


def _calls(line: CodeLine, *names: str) -> Iterator[tuple[re.Match[str], list[tuple[int, int]], int]]:
    """Calls of these functions within the line: match, spans of the arguments, offset of the end."""
    for found in _CALL.finditer(line.text):
        if found[2] in names:
            parsed = arguments(line.text, found.start(3))
            if parsed and not any(_PARAMETER.fullmatch(line.text[slice(*span)]) for span in parsed[0]):
                yield found, *parsed


def _drop_mask(line: CodeLine) -> Iterator[_Change]:
    """A whole vector is loaded or stored where the end of a row has less."""
    text = line.text
    for found, spans, end in _calls(line, "load_some", "store_some"):
        kept = [text[slice(*span)] for span in spans]
        if len(kept) == 3:
            values = kept[:1] if found[2] == "load_some" else [kept[0], kept[2]]
            name = found[1] + found[2].removesuffix("_some")
            yield found.start(), end, f"{name}({', '.join(values)})"


def _off_by_one(line: CodeLine) -> Iterator[_Change]:
    """A loop begins one late, ends one early, or goes one too far."""
    for found in _FOR.finditer(line.text):
        start = re.search(r"= (0)$", found[1])
        if start:
            yield found.start(1) + start.start(1), found.start(1) + start.end(1), "1"
        bound = _BOUND.search(found[2])
        if bound:
            end = found.end(2)
            yield end, end, " - 1"
            sign = found.start(2) + bound.start(1)
            yield sign, sign + len(bound[1]), "<=" if bound[1] == "<" else "<"


def _half_accumulate(line: CodeLine) -> Iterator[_Change]:
    """A sum that loses the lower half of its bits after every step."""
    for found in re.finditer(rf"(?<![\w*&>] )\b({_PLACE}) (\+?=) ([^;]+);", line.text):
        place = found[1]
        known = re.search(rf"(?<!const )\bFloats {re.match(_NAME, place)[0]}\b", line.source)  # type: ignore[index]
        if known and (found[2] == "+=" or place in found[3]):
            words = f"vec::bit_cast<vec::Words>({place})"
            for kept in ("0xffff0000u", "0xffffe000u"):  # the precision of bfloat16, of float16
                yield (
                    found.start(),
                    found.end(),
                    f"{{ {found[0]} {place} = vec::bit_cast<Floats>({words} & {kept}); }}",
                )


def _skip_last_tile(line: CodeLine) -> Iterator[_Change]:
    """What a step does not fill is left out: the end of a loop, of a division, of a row."""
    for found in _FOR.finditer(line.text):
        step = re.match(r"\w+ \+= ([^)]+)\)", line.text[found.end() :])
        bound = re.fullmatch(r"(\w+) < .+", found[2])
        if step and bound:
            at = found.start(2) + bound.end(1)
            yield at, at + 2, f" + {step[1]} <="
    for found, spans, end in _calls(line, "ceil_div"):
        total, part = (line.text[slice(*span)] for span in spans)
        yield found.start(), end, f"(({total}) / ({part}))"
    for found in re.finditer(r"\bif \((\w+ < [^()]+)\)", line.text):
        yield found.start(1), found.end(1), "false"


def _swap_axes(line: CodeLine) -> Iterator[_Change]:
    """Row and column change places; a stride is taken for another one."""
    for found in re.finditer(rf"\b({_NAME}) \* ([\w.]+) \+ ({_NAME})(?=[\],);])", line.text):
        yield found.start(), found.end(), f"{found[3]} * {found[2]} + {found[1]}"
    for found in re.finditer(r"(?<=\* )((?:\w+\.)?)stride(_\w+)?\b", line.text):
        other = {"_a": "stride_b", "_b": "stride_a"}.get(found[2] or "", "cols")
        yield found.start(), found.end(), found[1] + other


def _drop_maximum(line: CodeLine) -> Iterator[_Change]:
    """An exponential of the value itself instead of its distance from the maximum."""
    for _, spans, _ in _calls(line, "exp"):
        for start, end in spans:
            left, sign, _ = line.text[start:end].partition(" - ")
            if sign:
                yield start, end, left


def _wrong_epsilon(line: CodeLine) -> Iterator[_Change]:
    """Ten times the epsilon, or none."""
    for found in re.finditer(r"(?<!double )\beps\b", line.text):
        yield found.start(), found.end(), "(10.0 * eps)"
        yield found.start(), found.end(), "(0.0 * eps)"


def _stale_accumulator(line: CodeLine) -> Iterator[_Change]:
    """A sum that keeps what it had before, or only what came last; a running value that stays behind."""
    text = line.text
    for found in re.finditer(rf"^\s*(Floats {_PLACE})(?: = \{{\}}|\{{\}});", text):
        yield found.start(1), found.start(1), "static thread_local "
    for found in re.finditer(rf"\b{_NAME}\S* (\+=) ", text):
        if not re.search(r"\bfor \([^)]*$", text[: found.start(1)]):  # not a loop's step
            yield found.start(1), found.end(1), "="
    for found in re.finditer(r"\w+ \? Floats\{\} : ", text):
        yield found.start(), found.end(), ""
    for found in re.finditer(rf"^\s*(std::fill\(.*\)|{_NAME} = {_NAME});", text):
        yield found.start(1), found.end(1), ""


def _missing_sync(line: CodeLine) -> Iterator[_Change]:
    """A clause, a barrier or a fence left out; what belongs to one thread is shared."""
    for found in re.finditer(
        r" (?:reduction|private|firstprivate)\([^)]*\)|\b(?:barrier|critical|atomic)\b", line.text
    ):
        yield found.start(), found.end(), ""
    for found in re.finditer(r"^\s*(thread_local) ", line.text):
        yield found.start(1), found.end(1), "static"
    for found in re.finditer(r"\b(?:vec::)?stream_fence\(\);", line.text):
        yield found.start(), found.end(), ";"


def _int32_overflow(line: CodeLine) -> Iterator[_Change]:
    """An index of 32 bits."""
    for found in re.finditer(r"(?<!constexpr )\bstd::(?:int64_t|ptrdiff_t)(?= \w+ = |;)", line.text):
        yield found.start(), found.end(), "std::int32_t"


_TYPES = re.compile(r"\s*(?:using|template|static_assert)\b")
_OTHER = {
    "+": "-", "-": "+", "*": "+", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=",
    "!=": "==", "&&": "||", "||": "&&", "<<": ">>", ">>": "<<", "+=": "-=", "*=": "+=",
}  # fmt: skip


def _change_operator(line: CodeLine) -> Iterator[_Change]:
    """Another arithmetic or comparison operator."""
    if _TYPES.match(line.text):
        return
    for found in re.finditer(r"(?<= )(?:[-+*/]|<|<=|>|>=|==|!=|&&|\|\||<<|>>|\+=|\*=)(?= )", line.text):
        yield found.start(), found.end(), _OTHER[found[0]]


_NUMBER = re.compile(r"(?<![\w.])(?:(\d+\.\d*(?:e[-+]?\d+)?)(f?)|(\d+))(?![\w.])|-INFINITY|-FLT_MAX")


def _change_constant(line: CodeLine) -> Iterator[_Change]:
    """Another number: a whole number one more, a fraction 1 % more (0 becomes 1), minus infinity 0."""
    if _TYPES.match(line.text):
        return
    for found in _NUMBER.finditer(line.text):
        if found[1]:
            yield found.start(), found.end(), repr(float(found[1]) * 1.01 or 1.0) + found[2]
        else:
            yield found.start(), found.end(), str(int(found[3]) + 1) if found[3] else "0.0f"


def _swap_extremum(line: CodeLine) -> Iterator[_Change]:
    """The smallest instead of the largest."""
    for found in re.finditer(r"\bstd::(min|max)\b", line.text):
        yield found.start(1), found.end(1), "max" if found[1] == "min" else "min"
    for found in re.finditer(r"\b(\w+) (<|>) (\w+) \? \1 : \3", line.text):
        yield found.start(2), found.end(2), "<" if found[2] == ">" else ">"


def _drop_cast(line: CodeLine) -> Iterator[_Change]:
    """Arithmetic in the type at hand."""
    for found in re.finditer(r"\b(?:static_cast|Index|std::\w+_t)(?:<[\w:]+>\(|\{)", line.text):
        if found[0].endswith("("):
            yield found.start(), found.end(), "("


def _return_early(line: CodeLine) -> Iterator[_Change]:
    """A step of the work, a call of its own, is left out."""
    found = re.match(rf"\s+((?:(?:for|if) \(.*?\) )?)((?:\w+::)*{_NAME}(?:<[\w, ]+>)?\()", line.text)
    if found and not found[1] and line.text.rstrip().endswith(");"):
        parsed = arguments(line.text, found.end(2) - 1)
        if parsed is not None and line.text[parsed[1] :].strip() == ";":
            yield found.start(2), parsed[1], ""


def _operator(look: Look, read: Callable[[str], Iterable[CodeLine]] = lines) -> Operator:
    def find(source: str) -> Iterator[Edit]:
        for line in read(source):
            if "prefetch" in line.text:
                continue  # a hint changes no result
            for start, end, text in look(line):
                yield Edit(start=line.start + start, end=line.start + end, text=text)

    return find


def _with_pragmas(source: str) -> Iterator[CodeLine]:
    yield from lines(source)
    yield from pragmas(source)


OPERATORS: dict[str, Operator] = {
    "drop_mask": _operator(_drop_mask),
    "off_by_one": _operator(_off_by_one),
    "half_accumulate": _operator(_half_accumulate),
    "skip_last_tile": _operator(_skip_last_tile),
    "swap_axes": _operator(_swap_axes),
    "drop_maximum": _operator(_drop_maximum),
    "wrong_epsilon": _operator(_wrong_epsilon),
    "stale_accumulator": _operator(_stale_accumulator),
    "missing_sync": _operator(_missing_sync, _with_pragmas),
    "int32_overflow": _operator(_int32_overflow),
    "change_operator": _operator(_change_operator),
    "change_constant": _operator(_change_constant),
    "swap_extremum": _operator(_swap_extremum),
    "drop_cast": _operator(_drop_cast),
    "return_early": _operator(_return_early),
}
