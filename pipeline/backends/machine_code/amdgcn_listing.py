"""The listing of AMD's assembly text: the text that Triton keeps in, functions with source lines out."""

import re
from pathlib import Path, PurePath

from pipeline.backends.machine_code import amdgcn
from pipeline.backends.machine_code.listing import Function, Instruction, Listing, SourceLine
from pipeline.backends.machine_code.source_locations import call_chain, file_names

_FUNCTION = re.compile(r"^([A-Za-z_$][\w$.]*):")
_LABEL = re.compile(r"^(\.LBB\w+):")
_LOCATION = re.compile(r"^\t\.loc\s+(\d+)\s+(\d+)\s[^;]*(?:;\s*(.*))?$")
_INSTRUCTION = re.compile(r"^\t([a-z]\w+)([^;]*)")


def read_assembly(file: Path) -> Listing:
    """The functions of a kept assembly text."""
    functions = parse(file.read_text())
    lines = any(each.frames for function in functions for each in function.instructions)
    return Listing(
        file=file.name,
        command=f"cat {file.name}",
        functions=functions,
        without_lines=None if lines else f"{file.name} has no .loc directives",
    )


def parse(text: str) -> tuple[Function, ...]:
    """Functions of the assembly text."""
    files = file_names(text)
    by_name = {PurePath(file).name: file for file in files.values()}
    found: dict[str, list[Instruction]] = {}
    name, label = "", None
    frames: tuple[SourceLine, ...] = ()
    for line in text.splitlines():
        if match := _LOCATION.match(line):
            frames = _frames(match, files, by_name)
        elif match := _LABEL.match(line):
            label = match[1]
        elif match := _FUNCTION.match(line):
            name, frames = match[1], ()
        elif (match := _INSTRUCTION.match(line)) and match[1] not in amdgcn.PADDING:
            instruction = Instruction(
                label=label,
                mnemonic=match[1],
                text=" ".join(f"{match[1]}{match[2]}".split()),
                classes=(amdgcn.class_of(match[1], match[2]),),
                frames=frames,
            )
            found.setdefault(name, []).append(instruction)
            label = None
    return tuple(Function(name=name, instructions=tuple(each)) for name, each in found.items())


def _frames(match: re.Match[str], files: dict[int, str], by_name: dict[str, str]) -> tuple[SourceLine, ...]:
    """Line 0 is LLVM's way to say that no line is to blame."""
    innermost = SourceLine(file=files.get(int(match[1]), match[1]), line=int(match[2]))
    return (innermost, *call_chain(match[3] or "", by_name)[1:]) if innermost.line else ()
