"""An artifact with line numbers: the kept files of a variant in, the same machine code with a line table out.

Artifacts have none. The kept sources are compiled once more with one (-g1), by the command in the log; its
lines count only where the machine code is the artifact's, byte for byte.
"""

import shlex
import shutil
import subprocess
from pathlib import Path

from pipeline.backends.cpp import ARTIFACT, LOG, SOURCES, TIME_LIMIT, compiler
from pipeline.backends.machine_code.elf import code_sections
from pipeline.records.errors import ToolchainError


def with_lines(folder: Path, scratch: Path) -> Path:
    """Compile what the store entry `folder` holds once more, into `scratch`.

    Raises
    ------
    ToolchainError
        The compiler is not here, refuses the sources, or makes other machine code of them.
    """
    command = shlex.split((folder / LOG).read_text(errors="replace").partition("\n")[0])
    if not command or shutil.which(command[0]) is None:
        raise ToolchainError("source lines need objdump and the compiler that made the artifact")
    again = scratch / ARTIFACT
    command = [str(again) if part == f"../{ARTIFACT}" else part for part in command]
    try:
        done = compiler.run_tool([*command, *compiler.LINE_TABLE], folder / SOURCES, TIME_LIMIT)
    except (OSError, subprocess.TimeoutExpired):
        done = None
    if done is None or done.returncode != 0:
        raise ToolchainError("the kept sources could not be compiled again for source lines")
    if code_sections(again.read_bytes()) != code_sections((folder / ARTIFACT).read_bytes()):
        raise ToolchainError(
            "compiled again for source lines, the machine code differs: another compiler or CPU"
        )
    return again
