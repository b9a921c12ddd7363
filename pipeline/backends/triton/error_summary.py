"""One line for a table, from whatever a failing compile raised and printed."""

import re
import sysconfig
import traceback
from pathlib import Path

import numpy as np

_LONGEST = 300  # characters; the whole story stands in the log
_ASSEMBLER = re.compile(r"^ptxas.*?(?:error|fatal)\s*:\s*(.*)$", re.MULTILINE)
_PASSES = re.compile(r"\berror: (.*)$", re.MULTILINE)


def reason_of(error: BaseException, printed: str) -> str:
    """What went wrong: the compiler's own message where there is one, else the exception."""
    name = type(error).__name__
    if name == "PTXASError" and (found := _ASSEMBLER.search(str(error))):
        return _one_line(f"ptxas: {found[1]}")
    if name == "RuntimeError" and (found := _PASSES.search(printed)):
        return _one_line(f"{error}: {found[1]}")  # "PassManager::run failed": the message was printed before
    return _one_line(f"{name}: {_message(error)}")


def _message(error: BaseException) -> str:
    """Triton's front end puts an excerpt of the source, with a caret, before the message."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    if not lines:
        return _place(error)
    if lines[0].startswith("at "):
        place = lines[0].rstrip(":").removeprefix("at ")
        last = lines[-1].strip()
        cause = str(error.__cause__ or error.__context__ or "").strip()
        return f"{cause or last.lstrip('^')} (line {place} of the kernel)"
    return lines[0]


def _place(error: BaseException) -> str:
    """Of what says nothing: the line that raised it."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "no message"
    last = frames[-1]
    return f"no message ({Path(last.filename).name} line {last.lineno}: {last.line or ''})"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def is_interpreters_limit(error: BaseException) -> bool:
    """Whether the interpreter itself failed, in carrying out an operation that the language allows.

    What the language does not allow is refused before the interpreter's builder is asked.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    names = [frame.f_code.co_filename for frame in frames]
    inner = max((at for at, name in enumerate(names) if name.endswith(_INTERPRETER)), default=-1)
    if inner < 0 or any(not name.startswith(_LIBRARIES) for name in names[inner + 1 :]):
        return False
    return type(frames[inner].f_locals.get("self")).__name__ in _OPERATIONS


_INTERPRETER = "triton/runtime/interpreter.py"
_OPERATIONS = ("InterpreterBuilder", "ReduceOps", "ScanOps")
_LIBRARIES = (str(Path(np.__file__).parent), sysconfig.get_path("stdlib"))
