"""Where native code crashed on the CPU: a library in its process writes the stack, symbols give the line.

In: a file for its log. Out: how a process is started with it, and the innermost function of the candidate's
own, with its line.
"""

import sys
import tempfile
from pathlib import Path

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
    for frame in text.splitlines():
        path, _, rest = frame.partition("\t")
        offset, _, name = rest.partition("\t")
        if path.endswith(".so") and not path.startswith(_NOT_OWN) and Path(path).is_file():
            line = _source_line(Path(path), int(offset, 16))
            if not name:  # functions of one file have none here
                return f"at {line}" if line else None
            return f"in {name} ({line})" if line else f"in {name}"
    return None


def _source_line(library: Path, offset: int) -> str:
    """By a line table of the artifact's code, or by the library's own."""
    if not (library.name == ARTIFACT and (library.parent / SOURCES).is_dir()):
        return compiler.source_line(library, offset)
    with tempfile.TemporaryDirectory(prefix="kernelmill-") as scratch:
        try:
            return compiler.source_line(with_lines(library.parent, Path(scratch)), offset)
        except ToolchainError:
            return ""
