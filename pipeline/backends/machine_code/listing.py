"""Machine code as a table: functions, their instructions, each with its classes and its source lines."""

from pathlib import PurePath

from pipeline.records.record import Record


class SourceLine(Record, frozen=True, kw_only=True):
    """A line of a source, as the compiler named the file."""

    file: str
    line: int

    @property
    def short(self) -> str:
        """`matmul_triton.py:57`."""
        return f"{PurePath(self.file).name}:{self.line}"


class Instruction(Record, frozen=True, kw_only=True):
    """One instruction that does something: padding is left out."""

    address: int | None = None
    """Bytes from the start of its section; None in assembly text."""
    label: str | None = None
    """Where branches to it go."""
    mnemonic: str
    text: str
    """All of it, as the disassembler writes it, with single spaces."""
    classes: tuple[str, ...]
    """As in the instruction mix: one on GPUs, several on CPUs."""
    frames: tuple[SourceLine, ...] = ()
    """Where it comes from: the line itself, then the line that called (inlined) it, and so on outwards."""

    @property
    def source(self) -> SourceLine | None:
        """The line of the kernel's own folder that it belongs to.

        A library's function that was inlined (`tl.cdiv`, an intrinsic) counts for the line that calls it: the
        innermost frame that lies in the same folder as the outermost one, which is the kernel itself.
        """
        if not self.frames:
            return None
        home = PurePath(self.frames[-1].file).parent
        return next(frame for frame in self.frames if PurePath(frame.file).is_relative_to(home))


class Function(Record, frozen=True, kw_only=True):
    """One function, in the order of its code."""

    name: str
    instructions: tuple[Instruction, ...]


class Listing(Record, frozen=True, kw_only=True):
    """One file of machine code."""

    file: str
    """Name of the file that was read."""
    command: str
    """What prints the text that it was read from."""
    functions: tuple[Function, ...]
    without_lines: str | None = None
    """Why no source lines are known; None where they are."""

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """Those of all functions."""
        return tuple(each for function in self.functions for each in function.instructions)
