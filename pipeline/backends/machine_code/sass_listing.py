"""The listing of a cubin: nvdisasm's text in, functions with source lines out.

Triton's cubins say where an instruction comes from, not where that was inlined; its PTX says both, in
comments, and nvdisasm tells the line of the PTX for each instruction (-gp). Other compilers put the calls
into the cubin (-gi).
"""

import re
from pathlib import Path, PurePath

from pipeline.backends.machine_code import sass
from pipeline.backends.machine_code.listing import Function, Instruction, Listing, SourceLine
from pipeline.backends.machine_code.source_locations import call_chain, file_names

OPTIONS = ("-gi", "-gp")

_FUNCTION = re.compile(r"^([A-Za-z_$][\w$.]*):$")
_LABEL = re.compile(r"^(\.L\w*):$")
_FILE = re.compile(r'^\s*//## File "(.*?)", line (\d+)(?: inlined at "(.*?)", line (\d+))?')
_PTX = ".nv_debug_ptx_txt"
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_NAME = re.compile(r"(?:@!?U?P\w+ )?([A-Z][A-Z0-9]*)([.\w]*)")
_LOCATION = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s.*?(?://\s*(.*))?$")


def read_cubin(cubin: Path, ptx: Path | None) -> Listing:
    """Disassemble a cubin; `ptx` is the text that it was assembled from, where that was kept.

    Raises
    ------
    ToolchainError
        nvdisasm is missing or fails.
    """
    text = sass.disassemble(cubin, *OPTIONS)
    functions = parse(text, ptx.read_text() if ptx else "")
    lines = any(each.frames for function in functions for each in function.instructions)
    return Listing(
        file=cubin.name,
        command=f"nvdisasm -ndf -c {' '.join(OPTIONS)} {cubin.name}",
        functions=functions,
        without_lines=None if lines else f"{cubin.name} has no line table: it was compiled without -lineinfo",
    )


def parse(text: str, ptx: str = "") -> tuple[Function, ...]:
    """Functions of nvdisasm's text."""
    reader = _Reader(ptx_chains(ptx))
    for line in text.splitlines():
        reader.read(line)
    return tuple(
        Function(name=name, instructions=tuple(found)) for name, found in reader.functions.items() if found
    )


def ptx_chains(ptx: str) -> dict[int, tuple[SourceLine, ...]]:
    """Line of the PTX -> the source line that holds there, with its callers."""
    chains: dict[int, tuple[SourceLine, ...]] = {}
    files = file_names(ptx)
    by_name = {PurePath(file).name: file for file in files.values()}
    current: tuple[SourceLine, ...] = ()
    for number, line in enumerate(ptx.splitlines(), 1):
        if found := _LOCATION.match(line):
            innermost = SourceLine(file=files.get(int(found[1]), found[1]), line=int(found[2]))
            current = (innermost, *call_chain(found[3] or "", by_name)[1:]) if innermost.line else ()
        chains[number] = current
    return chains


class _Reader:
    """What holds at the line that is read."""

    def __init__(self, chains: dict[int, tuple[SourceLine, ...]]) -> None:
        self.functions: dict[str, list[Instruction]] = {}
        self._chains = chains
        self._name = ""
        self._label: str | None = None
        self._frames: tuple[SourceLine, ...] = ()
        self._through_ptx: tuple[SourceLine, ...] = ()
        self._complete = True

    def read(self, line: str) -> None:
        if found := _FUNCTION.match(line):
            self._name = found[1]
        elif found := _LABEL.match(line):
            self._label = found[1]
        elif found := _FILE.match(line):
            self._place(found)
        elif found := _INSTRUCTION.match(line):
            self._instruction(int(found[1], 16), found[2])

    def _place(self, found: re.Match[str]) -> None:
        """Several lines in a row are one place: the line, then where it was inlined, outwards."""
        if found[1] == _PTX:
            self._through_ptx = self._chains.get(int(found[2]), ())
            return
        if self._complete:
            self._frames, self._complete = (), False
        self._frames += (SourceLine(file=found[1], line=int(found[2])),)

    def _instruction(self, address: int, text: str) -> None:
        self._complete = True
        name = _NAME.match(text)
        kind = sass.class_of(name[1], name[2]) if name else "other"
        if kind:
            self.functions.setdefault(self._name, []).append(
                Instruction(
                    address=address,
                    label=self._label,
                    mnemonic=f"{name[1]}{name[2]}" if name else text,
                    text=" ".join(text.split()),
                    classes=(kind,),
                    frames=self._known_frames(),
                )
            )
        self._label = None

    def _known_frames(self) -> tuple[SourceLine, ...]:
        """The PTX knows more callers, where it speaks of the same line."""
        same = self._through_ptx[:1] == self._frames[:1]
        return self._through_ptx if same and len(self._through_ptx) > len(self._frames) else self._frames
