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
_ALIGNED = r"(?:__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)"
_DYNAMIC = re.compile(
    rf"\bextern\s+((?:volatile\s+|{_ALIGNED}\s*)*)__shared__\s+((?:volatile\s+|{_ALIGNED}\s*)*)([\w:\s]+?)\s*"
    rf"((?:{_ALIGNED}\s*)?)\b(\w+)\s*\[\s*\]\s*;"
)
_STATIC = re.compile(r"\b(?:static\s+)?__shared__\s+(?:static\s+)?")
_DECLARED = re.compile(r"\b(\w+)\s*((?:\[[^\]]*\]\s*)*)$")
_ALIGNAS = re.compile(r"\balignas\s*(\((?:[^()]|\([^()]*\))*\))")
_SCOPE = re.compile(r'\bnamespace\b[^;{}()]*\{|\bextern\s*"C"\s*\{|[{}]')
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
    text = _rewrite_assembly(text)
    return _static(_DYNAMIC.sub(_dynamic, text))


def _dynamic(found: re.Match[str]) -> str:
    """`extern __shared__ float s[];` as a pointer; outside of functions, as a reference to it."""
    is_volatile = any("volatile" in found[number] for number in (1, 2))
    kind, name = f"{'volatile ' * is_volatile}{found[3]}*", found[5]
    if _at_file_scope(found.string, found.start()):
        return f"static {kind}& {name} = reinterpret_cast<{kind}&>({_SHARED});"
    return f"{kind} const {name} = reinterpret_cast<{kind}>({_SHARED});"


def _at_file_scope(text: str, position: int) -> bool:
    open_scopes: list[bool] = []
    for found in _SCOPE.finditer(text, 0, position):
        if found[0] != "}":
            open_scopes.append(found[0] == "{")
        elif open_scopes:
            open_scopes.pop()
    return not any(open_scopes)


def _static(text: str) -> str:
    """`__shared__ float a[4], b;` as static variables, each of which is registered."""
    parts, position = [], 0
    while found := _STATIC.search(text, position):
        declaration = next(_split(text[found.end() :], ";"), "")
        end = found.end() + len(declaration)
        declared = [
            match for part in _split(declaration, ",", "<") if (match := _DECLARED.search(part.strip()))
        ]
        poisoned = "".join(_POISONED.format(match[1]) for match in declared)
        parts += [text[position : found.start()], f"static {_ALIGNAS.sub(_aligned, declaration)};{poisoned}"]
        position = end + 1
    return "".join([*parts, text[position:]])


def _aligned(found: re.Match[str]) -> str:
    """What may stand after `static`."""
    return f"__attribute__((aligned{found[1]}))"


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
