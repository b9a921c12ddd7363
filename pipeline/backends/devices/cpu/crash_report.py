"""Where native code crashed on the CPU: a library in its process writes the stack, symbols give the line.

In: a file for its log. Out: how a process is started with it, and the innermost function of the candidate's
own. Artifacts have no line numbers, so that a kernel is built once more with them: they change no code.
"""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from pipeline.backends.cpp import compiler
from pipeline.backends.cpp.kept_objects import kept_object
from pipeline.backends.devices.device import MemoryChecker
from pipeline.records.errors import ToolchainError

SOURCE = Path(__file__).with_suffix(".cpp")
FOLDER = "crash_report"
LOG_VARIABLE = "KERNELMILL_CRASH_LOG"
_FLAGS = ("-std=c++17", "-O1", "-shared", "-fPIC")
_NOT_OWN = ("/usr/", "/lib", sys.prefix, sys.base_prefix)
_REBUILD_SECONDS = 60.0


def memory_checker(log: Path) -> MemoryChecker | None:
    """The library, which writes to `log`; None where it cannot be built."""
    try:
        library = kept_object(SOURCE, _FLAGS, FOLDER)
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
    """By the library's own line numbers, or by those of the same code: its log begins with its command."""
    log, sources = library.with_name("log.txt"), library.with_name("sources")
    if not (log.is_file() and sources.is_dir()):
        return compiler.source_line(library, offset)
    command = shlex.split(log.read_text(errors="replace").partition("\n")[0])
    with tempfile.TemporaryDirectory() as scratch:
        again = Path(scratch, library.name)
        command = [*command, "-g1", "-o", str(again)]
        try:
            done = subprocess.run(
                command, cwd=sources, capture_output=True, timeout=_REBUILD_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return compiler.source_line(again, offset) if done.returncode == 0 else ""
