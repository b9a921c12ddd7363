"""One line for a table, from whatever a failing compile raised and printed."""

import contextlib
import gc
import inspect
import re
import sysconfig
import traceback
from pathlib import Path
from typing import Any

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
    if not lines[0].startswith("at "):
        return lines[0]
    inner: Any = error  # a kernel that another one calls raised it
    while str(inner.__cause__ or "").startswith("at "):
        inner = inner.__cause__
    cause = str(inner.__cause__ or inner.__context__ or "").strip()
    return f"{cause or str(inner).splitlines()[-1].strip().lstrip('^')} ({_line_of(inner)})"


def _line_of(error: Any) -> str:
    """The line of the file, and its text; Triton counts from the first line of the kernel."""
    import triton  # only where it raised something: whether it interprets is decided at its first import

    number, text = int(str(error)[len("at ") :].partition(":")[0]), getattr(error, "src", None) or ""
    source = "".join(text.splitlines()[number - 1 : number]).strip()
    for kernel in gc.get_objects():
        if isinstance(kernel, triton.JITFunction) and kernel.src == text:
            with contextlib.suppress(OSError):  # the file is gone
                lines, first = inspect.getsourcelines(kernel.fn)
                above = next(
                    (count for count, line in enumerate(lines) if line.lstrip().startswith("def ")), 0
                )
                return f"line {first + above + number - 1}: {source}"
    return f"line {number} of the kernel: {source}".rstrip(": ")


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

    What the language does not allow is refused before the interpreter's builder is asked, by other errors
    than those in `_MISSING`. What a kernel asserts on its values is its own.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    while frames and frames[-1].f_code.co_filename.startswith(_LIBRARIES):
        frames.pop()
    names = [frame.f_code.co_filename for frame in frames]
    if not frames or not any(name.endswith(_INTERPRETER) for name in names):
        return False
    if isinstance(error, _MISSING) or _UNPATCHED in str(error):
        return any(room in names[-1] for room in _ROOMS)
    own = frames[-1].f_code.co_name in _ASSERTIONS
    is_operation = type(frames[-1].f_locals.get("self")).__name__ in _OPERATIONS
    return names[-1].endswith(_INTERPRETER) and is_operation and not own


_MISSING = (AttributeError, NotImplementedError)
"""What code raises that was written for the compiler, and finds less than that has."""
_UNPATCHED = "`_semantic` argument must be provided"
"""Of an instruction of one vendor (`tl.extra.cuda`), which the interpreter does not know."""
_INTERPRETER = "triton/runtime/interpreter.py"
_ROOMS = (_INTERPRETER, "/triton/language/", "/triton/interpretation/")
_OPERATIONS = ("InterpreterBuilder", "ReduceOps", "ScanOps")
_ASSERTIONS = ("create_assert", "create_assume")
_LIBRARIES = (str(Path(np.__file__).parent), sysconfig.get_path("stdlib"))
