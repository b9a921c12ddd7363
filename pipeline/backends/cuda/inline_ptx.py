"""Rewrite CUDA C++ for the host's compiler: inline PTX as calls, shared memory as arrays and a pointer.

In: preprocessed source. Out: the same lines, in which `asm("cp.async.wait_group %0;" :: "n"(1));` reads
`emulated::ptx::cp_async_wait_group(1);`. The functions are those of `emulation/ptx.hpp`, their arguments the
operands in the order of the instruction; a statement without such a function is the compiler's error.
"""

import re
from collections.abc import Iterator

from pipeline.backends.cpp.extension_builds import NotEmulatedError

_ASM = re.compile(r"\basm\b(?:\s*(?:volatile|__volatile__))?\s*\(")
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ALIGNED = r"(?:(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)\s*)?"
_DYNAMIC = re.compile(
    rf"\bextern\s+{_ALIGNED}__shared__\s+{_ALIGNED}(?:volatile\s+)?([\w:\s]+?)\s*\b(\w+)\s*\[\s*\]\s*;"
)
_STATIC = re.compile(r"\b(?:static\s+)?__shared__\s+(?:static\s+)?([^;=]*);")
_DECLARED = re.compile(r"\b(\w+)\s*((?:\[[^\]]*\]\s*)*)$")
_OPERAND = re.compile(r'\s*"[^"]*"\s*\((.*)\)\s*$', re.DOTALL)
_PLACE = re.compile(r"%(\d+)$")
_INSTRUCTION = re.compile(r"[a-z][\w.:]*$")
_SHARED = "emulated::machine.shared"
_POISONED = (
    " static const emulated::Poisoned poisoned_{0}("
    '&{0}, sizeof {0}, sizeof(std::remove_all_extents_t<decltype({0})>), "{0}");'
)


def rewrite(text: str) -> str:
    """The source for the host's compiler, line by line where it was.

    Raises
    ------
    NotEmulatedError
        An asm statement is not a sequence of plain instructions; the text shows it.
    """
    text = _DYNAMIC.sub(rf"\1* const \2 = reinterpret_cast<\1*>({_SHARED});", _rewrite_assembly(text))
    return _STATIC.sub(_shared, text)


def _shared(found: re.Match[str]) -> str:
    """`__shared__ float a[4], b;` as static variables, each of which is registered."""
    declared = [match for part in _split(found[1], ",", "<") if (match := _DECLARED.search(part.strip()))]
    poisoned = "".join(_POISONED.format(match[1]) for match in declared)
    return f"static {found[1]};{poisoned}"


def _rewrite_assembly(text: str) -> str:
    parts, position = [], 0
    while found := _ASM.search(text, position):
        end = _closing(text, found.end())
        parts.append(text[position : found.start()])
        inside = text[found.end() : end]
        parts.append(_calls(inside) + "\n" * inside.count("\n"))
        position = end + 1
    return "".join([*parts, text[position:]])


def _calls(inside: str) -> str:
    """`template : outputs : inputs : clobbers` -> a call for each instruction."""
    sections = list(_split(inside, ":"))
    template = "".join(_LITERAL.findall(sections[0])).replace("\\n", " ").replace("\\t", " ")
    values = [_value(operand) for section in sections[1:3] for operand in _split(section, ",")]
    calls = [_call(statement.strip(), values) for statement in template.split(";") if statement.strip()]
    return f"({', '.join(calls) or 'void()'})"


def _call(statement: str, values: list[str]) -> str:
    """`mma.sync… {%0, %1}, [%2], 16` -> `emulated::ptx::mma_sync…(first, second, third, 16)`."""
    instruction, _, operands = statement.partition(" ")
    if not _INSTRUCTION.match(instruction):
        raise NotEmulatedError(f"inline PTX that is not a plain instruction: {statement}")
    arguments = []
    for word in re.sub(r"[\[\]{}]", " ", operands).split(","):
        place = _PLACE.match(word.strip())
        if place and int(place[1]) < len(values):
            arguments.append(values[int(place[1])])
        elif word.strip().isdigit():
            arguments.append(word.strip())
        elif word.strip():
            raise NotEmulatedError(f"inline PTX with the operand `{word.strip()}`: {statement}")
    return f"emulated::ptx::{re.sub(r'[.:]+', '_', instruction)}({', '.join(arguments)})"


def _value(operand: str) -> str:
    found = _OPERAND.match(operand)
    if not found:
        raise NotEmulatedError(f"inline PTX with `{operand.strip()}`, expected a constraint and a value")
    return found[1].strip()


def _split(text: str, separator: str, also: str = "") -> Iterator[str]:
    """Parts between separators that stand outside of brackets and strings; none that is empty at the end.

    `also`: `<` where these are brackets, too.
    """
    opening, closing = f"([{{{also}", f")]}}{also.replace('<', '>')}"
    depth, start, position = 0, 0, 0
    while position < len(text):
        literal = _LITERAL.match(text, position)
        if literal:
            position = literal.end()
            continue
        if text.startswith("::", position) and separator == ":" and depth:
            position += 2
            continue
        depth += (text[position] in opening) - (text[position] in closing)
        if text[position] == separator and depth == 0:
            yield text[start:position]
            start = position + 1
        position += 1
    if text[start:].strip():
        yield text[start:]


def _closing(text: str, position: int) -> int:
    """Where the bracket closes that opened before `position`."""
    depth = 1
    while position < len(text):
        literal = _LITERAL.match(text, position)
        if literal:
            position = literal.end()
            continue
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return position
        position += 1
    raise NotEmulatedError("inline PTX whose bracket does not close")
