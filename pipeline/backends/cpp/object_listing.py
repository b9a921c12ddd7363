"""The listing of a CPU's shared object: the kept files of a variant in, functions with source lines out."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePath

from pipeline.backends.cpp import ARTIFACT, DISASSEMBLY, SOURCES, TIME_LIMIT, compiler
from pipeline.backends.cpp.disassembly import read_lines
from pipeline.backends.cpp.facts import classes_of, read_functions
from pipeline.backends.cpp.line_table import with_lines
from pipeline.backends.machine_code.listing import Function, Instruction, Listing, SourceLine
from pipeline.records.errors import ToolchainError

_ADDRESS = re.compile(r"^\s*([0-9a-f]+):\t")
_PLACE = re.compile(r"^(inlined by )?(/\S.*?):(\d+)(?: \(.*\))?$")


def read_shared_object(folder: Path) -> Listing:
    """The listing of `kernel.so` in a store entry.

    Raises
    ------
    ToolchainError
        No disassembly was kept: binutils was missing when the variant was compiled.
    """
    if not (folder / DISASSEMBLY).is_file():
        raise ToolchainError(f"{folder}: no {DISASSEMBLY}; install binutils (objdump) and compile again")
    functions = read_functions(folder / ARTIFACT)
    frames, reason = source_lines(folder)
    return Listing(
        file=ARTIFACT,
        command=f"objdump -d --no-show-raw-insn --section=.text {ARTIFACT}",
        functions=parse((folder / DISASSEMBLY).read_text(), set(functions), frames),
        without_lines=reason,
    )


def parse(text: str, functions: set[str], frames: dict[int, tuple[SourceLine, ...]]) -> tuple[Function, ...]:
    """The given functions of objdump's text."""
    found: dict[str, list[Instruction]] = {}
    for line in read_lines(text, functions):
        found.setdefault(line.function, []).append(
            Instruction(
                address=line.address,
                mnemonic=line.mnemonic,
                text=f"{line.mnemonic} {line.operands}".strip(),
                classes=tuple(classes_of(line)),
                frames=frames.get(line.address, ()),
            )
        )
    return tuple(Function(name=name, instructions=tuple(each)) for name, each in found.items())


def source_lines(folder: Path) -> tuple[dict[int, tuple[SourceLine, ...]], str | None]:
    """Address -> source line with its callers; or none, and the reason."""
    objdump = shutil.which("objdump")
    if objdump is None:
        return {}, "source lines need objdump and the compiler that made the artifact"
    with tempfile.TemporaryDirectory(prefix="kernelmill-") as scratch:
        try:
            again = with_lines(folder, Path(scratch))
        except ToolchainError as error:
            return {}, str(error)
        text = _run([objdump, "-d", "-l", "--inlines", "--no-show-raw-insn", "-j", ".text", again], folder)
    home = os.path.realpath(folder / SOURCES)
    places = parse_lines(text or "")
    return {address: tuple(_below(home, each) for each in frames) for address, frames in places}, None


def _below(home: str, place: SourceLine) -> SourceLine:
    """The same line of two variants is one line: without the store entry that the sources are kept in."""
    path = PurePath(place.file)
    if not path.is_relative_to(home):
        return place
    return SourceLine(file=str(path.relative_to(home)), line=place.line)


def parse_lines(text: str) -> Iterator[tuple[int, tuple[SourceLine, ...]]]:
    """(address, frames) of `objdump -l --inlines`, which repeats a place only where it changes."""
    frames: list[SourceLine] = []
    innermost: list[SourceLine] = []
    complete = True
    for line in text.splitlines():
        if place := _PLACE.match(line):
            found = SourceLine(file=os.path.normpath(place[2]), line=int(place[3]))
            if not place[1]:
                innermost, frames = [found], [found]
            else:
                frames = [*(innermost if complete else frames), found]
            complete = False
        elif address := _ADDRESS.match(line):
            if complete:  # nothing was said: the place itself, without callers
                frames = innermost
            complete = True
            yield int(address[1], 16), tuple(frames)


def _run(command: list[str | Path], folder: Path) -> str | None:
    """What it prints; None where it fails."""
    try:
        result = compiler.run_tool(command, folder, TIME_LIMIT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout if result.returncode == 0 else None
