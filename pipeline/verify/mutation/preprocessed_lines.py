"""The lines of C++ sources that the preprocessor keeps in some variant; others are never compiled.

In: jobs of an implementation. Out: (file, line) of every line that is in the code of one of them.
"""

import re
import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path

from pipeline.backends.backend import CompileJob
from pipeline.backends.c_sources import definitions
from pipeline.backends.cpp import compiler
from pipeline.records import environment

_MARK = re.compile(r'# (\d+) "([^"]*)"')


def live_lines(jobs: Iterable[CompileJob], root: Path) -> frozenset[tuple[str, int]]:
    """Lines by file from the repository's root, which `root` is."""
    found: set[tuple[str, int]] = set()
    for arguments, source in dict.fromkeys(
        (tuple(definitions(job)), job.implementation.source) for job in jobs
    ):
        flags = shlex.split(compiler.toolchain()["c++ flags"])
        command = [compiler.find()[0], *flags, "-E", *arguments, source]
        result = subprocess.run(
            command, cwd=root, env=environment.untranslated(), capture_output=True, text=True, check=False
        )
        found |= _lines(result.stdout, root)
    return frozenset(found)


def _lines(text: str, root: Path) -> set[tuple[str, int]]:
    """The markers `# 12 "kernels/vector.hpp"` say where the lines after them come from."""
    found: set[tuple[str, int]] = set()
    file, line = "", 0
    for each in text.splitlines():
        mark = _MARK.match(each)
        if mark:
            line, path = int(mark[1]), (root / mark[2]).resolve()
            file = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
            continue
        if file and each.strip():
            found.add((file, line))
        line += 1
    return found
