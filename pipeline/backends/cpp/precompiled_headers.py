"""System headers compiled once for all variants of a round. In: a source. Out: a header to be read before it.

A vectorised kernel spends two thirds of its compile on `<cmath>` and `<immintrin.h>`, as every other
variant does. What is compiled ahead is the text that the source begins with anyway, its includes in quotes
followed: lines of `#include <...>` and the conditions around them, up to the first line of anything else.
Including that twice changes nothing (C++ standard, [using.headers]), so the artifact is the same, byte for
byte. Where macros of the command line would have changed the headers, GCC reads their text instead (GCC
manual, "Using Precompiled Headers").
"""

import contextlib
import re
from pathlib import Path

from pipeline.backends.cpp import compiler
from pipeline.records.record import digest

HEADER = "headers.hpp"
SECONDS = 30.0  # for one header; it takes about one
_GCC = re.compile(r"\bg\+\+|\bgcc\b|Free Software Foundation", re.IGNORECASE)
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_LOCAL = re.compile(r'#\s*include\s+"([^"]+)"$')
_SYSTEM = re.compile(r"#\s*include\s+<[^>]+>$")
_CONDITION = re.compile(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b")
_ONCE = re.compile(r"#\s*pragma\s+once$")
_OPENS = ("if", "ifdef", "ifndef")


def make(source: Path, shared: Path) -> None:
    """Compile what a source begins with, unless somebody did or does; it takes as long as two variants.

    Where that fails, on a full disk for example, everybody does without.
    """
    text = beginning(source)
    if not text or not is_supported():
        return
    header = header_path(text, shared)
    made = header.with_name("made.gch")
    with contextlib.suppress(OSError):  # the folder is there where another worker was first
        header.parent.mkdir(parents=True)
        header.write_text(text)
        if compiler.precompile(header, made, log=header.with_name("log.txt"), seconds=SECONDS):
            made.rename(compiled_form(header))
        else:
            made.unlink(missing_ok=True)


def find(source: Path, shared: Path) -> Path | None:
    """The header to be read before a source, with its compiled form next to it; None: there is none yet."""
    header = header_path(beginning(source), shared)
    return header if compiled_form(header).is_file() else None


def beginning(source: Path) -> str:
    """The includes of system headers that a source begins with, one line each; empty where there are none."""
    lines: list[str] = []
    _collect(source, lines, {source.resolve()})
    whole = _balanced(lines)
    return "".join(f"{line}\n" for line in whole) if any(map(_SYSTEM.match, whole)) else ""


def header_path(text: str, shared: Path) -> Path:
    """Where the header of sources that begin with `text` lies; another text has another folder."""
    return shared / digest(text) / HEADER


def is_supported() -> bool:
    """Whether the compiler reads compiled headers as GCC does."""
    return _GCC.search(compiler.toolchain()["c++"]) is not None


def compiled_form(header: Path) -> Path:
    """Where GCC looks for it."""
    return header.with_name(f"{header.name}.gch")


def _collect(source: Path, lines: list[str], seen: set[Path]) -> bool:
    """Add a file's lines up to the first of another kind; whether that is its end."""
    text = _COMMENTS.sub(lambda found: "\n" * found[0].count("\n"), source.read_text(errors="replace"))
    for line in map(str.strip, text.splitlines()):
        if not line or _ONCE.match(line):
            continue
        if (local := _LOCAL.match(line)) is not None:
            path = (source.parent / local[1]).resolve()
            if path in seen:
                continue
            seen.add(path)
            if not path.is_file() or not _collect(path, lines, seen):
                return False
        elif _SYSTEM.match(line) or (_CONDITION.match(line) and not line.endswith("\\")):
            lines.append(line)
        else:
            return False
    return True


def _balanced(lines: list[str]) -> list[str]:
    """Without a condition at the end that was still open where the lines stopped."""
    depth = end = 0
    for number, line in enumerate(lines, 1):
        if (condition := _CONDITION.match(line)) is not None:
            depth += (condition[1] in _OPENS) - (condition[1] == "endif")
        if depth == 0:
            end = number
    return lines[:end]
