"""PyTorch's headers, compiled once for all extensions that are built with the same arguments.

In: these arguments. Out: a header to be read before a source. They are more than half of what the compiler
does for an extension. Compiled they take 0.5 GiB of the user's cache, and to compile them takes a third
longer than to build one extension, so that this is done for the third. Where a candidate's own arguments do
not fit, GCC reads their text (GCC manual, "Using Precompiled Headers").
"""

import contextlib
import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pipeline.backends.cpp import compiler
from pipeline.backends.cpp.extension_builds import WITHOUT_FRONTEND, compile_arguments
from pipeline.backends.cpp.precompiled_headers import HEADER, compiled_form, is_supported
from pipeline.records import environment
from pipeline.records.record import digest

FOLDER = "kernelmill/extension-headers"
PAYS = 3
"""Extensions for which they are compiled."""
_SECONDS = 300.0  # half a minute on a quiet machine


def for_next_build(arguments: Sequence[str]) -> Path | None:
    """The header for an extension that is about to be built; None: it is built without.

    Counts the builds of this user. Nobody waits for what another process compiles, and where it cannot be
    kept, on a full disk for example, everybody does without.
    """
    cache, version = environment.user_cache(), compiler.toolchain()["c++"]
    if cache is None or not is_supported():
        return None
    import torch

    command = [*compiler.find(), *compile_arguments({}), *arguments]
    header = cache / FOLDER / digest([version, str(torch.__version__), command, WITHOUT_FRONTEND]) / HEADER
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if not compiled_form(header).is_file():
            header.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_if_it_pays(command, header)
    return header if compiled_form(header).is_file() else None


def _make_if_it_pays(command: Sequence[str], header: Path) -> None:
    with header.with_name("builds").open("ab") as builds:
        builds.write(b".")
        builds.flush()
        if builds.tell() < PAYS:
            return
        try:
            fcntl.flock(builds, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        builds.truncate(0)  # where it fails, the next one does not try again at once
        if not compiled_form(header).is_file():
            _make(command, header)


def _make(command: Sequence[str], header: Path) -> None:
    """Compile them, in place of those for another compiler or PyTorch."""
    for other in header.parent.parent.iterdir():
        if other != header.parent:
            shutil.rmtree(other, ignore_errors=True)
    header.write_text(WITHOUT_FRONTEND)
    with tempfile.TemporaryDirectory(dir=header.parent) as scratch:
        made = Path(scratch, HEADER)
        making = [*command, "-x", "c++-header", "-o", str(made), str(header)]
        subprocess.run(making, capture_output=True, timeout=_SECONDS, check=True)
        made.rename(compiled_form(header))
