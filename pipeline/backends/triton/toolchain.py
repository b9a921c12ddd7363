"""What a binary depends on besides its source: versions of Triton and of the assemblers in its wheel."""

import functools
import importlib.metadata
import re
import subprocess
from pathlib import Path

from pipeline.backends.machine_code.nvidia_tools import tools
from pipeline.records.configuration.hardware import Target
from pipeline.records.errors import ToolchainError

ASSEMBLERS = ("ptxas", "ptxas-blackwell")  # which one Triton takes for an architecture depends on its version


def versions(target: Target) -> dict[str, str]:
    """Versions and options, without importing Triton.

    Raises
    ------
    ToolchainError
        Triton is not installed, or its assembler cannot be run.
    """
    found = {"triton": _triton_version(), "fp_fusion": "on"}
    if target.kind == "cuda":
        for name in ASSEMBLERS:
            if (tools() / name).is_file():
                found[name] = _assembler_version(tools() / name)
    return found


def _triton_version() -> str:
    tools()
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError as error:
        raise ToolchainError("triton is there but not installed: pip install triton") from error


@functools.cache
def _assembler_version(assembler: Path) -> str:
    try:
        text = subprocess.run([assembler, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainError(f"{assembler.name} of triton cannot be run: {error}") from error
    match = re.search(r"V(\d+\.\d+\.\d+)", text)
    return match[1] if match else text.strip().splitlines()[-1]
