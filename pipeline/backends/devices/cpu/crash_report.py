"""Where native code crashed on the CPU: a library in its process writes the stack, symbols give the line.

In: a file for its log. Out: how a process is started with it, and the innermost function of the candidate's
own, with its line.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline.backends.cpp import ARTIFACT, SOURCES, compiler
from pipeline.backends.cpp.kept_objects import kept_object
from pipeline.backends.cpp.line_table import with_lines
from pipeline.backends.devices.device import MemoryChecker
from pipeline.records.errors import ToolchainError

REPORTER = Path(__file__).with_suffix(".cpp")
FOLDER = "crash_report"
LOG_VARIABLE = "KERNELMILL_CRASH_LOG"
_FLAGS = ("-std=c++17", "-O1", "-shared", "-fPIC")
_NOT_OWN = ("/usr/", "/lib", sys.prefix, sys.base_prefix)


def memory_checker(log: Path) -> MemoryChecker | None:
    """The library, which writes to `log`; None where it cannot be built."""
    try:
        library = kept_object(REPORTER, _FLAGS, FOLDER)
    except ToolchainError:
        return None
    environment = {"LD_PRELOAD": str(library), LOG_VARIABLE: str(log)}
    return MemoryChecker(command=(), environment=environment, place=innermost)


def innermost(text: str) -> str | None:
    """`in softmax (softmax.cpp:17)` or `at softmax.cpp:17` of a log.

    None if nothing on the stack is the candidate's own.
    """
    frames = [frame for frame in map(_frame, text.splitlines()) if _is_own(frame.library)]
    if not frames:
        return None
    library = frames[0].library
    names = {frame.offset: frame.name for frame in reversed(frames) if frame.library == library}
    place = _source_place(Path(library), [frame.offset for frame in frames if frame.library == library])
    name = names[frames[0].offset if place is None else place.code]
    if not name:  # functions of one file have none here
        return None if place is None else f"at {place.text}"
    return f"in {name}" if place is None else f"in {name} ({place.text})"


class _Frame(NamedTuple):
    """A function on the stack."""

    library: str
    offset: int
    name: str


def _frame(line: str) -> _Frame:
    library, _, rest = line.partition("\t")
    offset, _, name = rest.partition("\t")
    return _Frame(library, int(offset, 16), name)


def _is_own(library: str) -> bool:
    return library.endswith(".so") and not library.startswith(_NOT_OWN) and Path(library).is_file()


def _source_place(library: Path, offsets: Sequence[int]) -> compiler.SourcePlace | None:
    """By a line table of the artifact's code, or by the library's own."""
    if not (library.name == ARTIFACT and (library.parent / SOURCES).is_dir()):
        return compiler.source_place(library, offsets)
    with tempfile.TemporaryDirectory(prefix="kernelmill-") as scratch:
        try:
            return compiler.source_place(with_lines(library.parent, Path(scratch)), offsets)
        except ToolchainError:
            return None
