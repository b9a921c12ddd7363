"""Where and with what a result is made."""

import contextlib
import datetime
import functools
import hashlib
import platform
import subprocess
from pathlib import Path

from pipeline.records.planning.specs import Build
from pipeline.records.provenance import Provenance

REVISION = ".kernelmill-revision"
"""File in the top folder of a packed copy."""


def provenance(build: Build) -> Provenance:
    """Provenance of a result that is made now, on this machine."""
    return Provenance(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        host=hashlib.sha256(platform.node().encode()).hexdigest()[:12],
        toolchain=build.toolchain,
        code=build.code,
        git=revision(Path.cwd()),
    )


@functools.cache
def revision(folder: Path) -> str | None:
    """Short commit, `+` appended where tracked files differ from it; None outside a checkout.

    A packed copy of a checkout has no git: it says in a file what it was packed from.
    """
    with contextlib.suppress(OSError):
        return (folder / REVISION).read_text().strip() or None
    try:
        commit = subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return commit.stdout.strip() or None
