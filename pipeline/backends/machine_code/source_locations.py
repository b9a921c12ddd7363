"""Source locations in assembly text: `.file` directives and the comments that LLVM writes after `.loc`."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from pipeline.backends.machine_code.listing import SourceLine

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?', re.MULTILINE)
_FRAME = re.compile(r"([^\s:@\[\]]+):(\d+):\d+")


def file_names(text: str) -> dict[int, str]:
    """Number of a `.file` directive -> path; directory and name may stand apart."""
    return {int(number): str(PurePosixPath(first) / second) for number, first, second in _FILE.findall(text)}


def call_chain(comment: str, paths: Mapping[str, str]) -> tuple[SourceLine, ...]:
    """`b.py:43:17 @[ a.py:31:25 @[ a.py:46:69 ] ]` -> the line, its caller, the caller's caller."""
    return tuple(
        SourceLine(file=paths.get(name, name), line=int(line)) for name, line in _FRAME.findall(comment)
    )
