"""What this project adds to processes of native code, compiled once and kept in the user's cache."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pipeline.backends.cpp import compiler
from pipeline.records import environment
from pipeline.records.errors import ToolchainError
from pipeline.records.record import digest, digest_bytes

COMPILE_SECONDS = 120.0  # a second or two on a quiet machine


def kept_object(source: Path, flags: Sequence[str], folder: str) -> Path:
    """The file that the compiler makes of `source` with these flags; `folder`: its own in the cache.

    Raises
    ------
    ToolchainError
        There is no compiler, or no folder to keep it in, or the compiler refused it; the text says which.
    """
    version, cache = compiler.toolchain()["c++"], environment.user_cache()
    if cache is None:
        raise ToolchainError(f"{source.name} is kept in the user's cache: set XDG_CACHE_HOME or HOME")
    command = [*compiler.find(), *flags]
    identity = digest([version, command, digest_bytes(source.read_bytes())])
    path = cache / "kernelmill" / folder / f"{identity}.o"
    if path.is_file():
        return path
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            made = Path(scratch, "made.o")
            _run([*command, "-o", str(made), str(source)], source, path.parent)
            made.rename(path)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"{source.name} cannot be kept in {path.parent}: {error}") from error
    return path


def _run(command: Sequence[str], source: Path, folder: Path) -> None:
    done = compiler.run_tool(command, folder, COMPILE_SECONDS)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        raise ToolchainError(f"{source.name}: {(lines or ['the compiler failed'])[0]}")
