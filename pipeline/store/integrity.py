"""Digests of written files, by which damage is noticed before a file is used.

In: files as they are written. Out: a seal for a file (`<name>.seal` next to it) or for all files of a folder
(`seal.json` in it); later, the names of those that are no longer what was written.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pipeline.records.record import digest_bytes, to_json
from pipeline.store.atomic import write_atomic
from pipeline.store.temporary import prefix

SEAL = "seal.json"
SUFFIX = ".seal"


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file and the digest of its content, the digest first: where the file stands, it can be checked.

    Raises
    ------
    StoreError
        No space, no permission: the file is untouched.
    """
    write_atomic(_seal_of(path), digest_bytes(content).encode())
    write_atomic(path, content)


def is_damaged(path: Path) -> bool:
    """Whether a file is there and is not what was written; one without a seal is believed, an empty one not.

    Results that came home in a bundle have none: the bundle was checked as a whole.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return digest_bytes(content) != _seal_of(path).read_text()
    except (OSError, UnicodeDecodeError):
        return not content


def unseal(path: Path) -> None:
    """Forget the seal of a file that something else will write."""
    _seal_of(path).unlink(missing_ok=True)


def seal_folder(folder: Path) -> None:
    """Write the digests of all files in a folder that is complete."""
    (folder / SEAL).write_bytes(to_json(_digests(folder)))


def reseal(folder: Path, digests: Mapping[str, str]) -> None:
    """The same for a folder that others may read meanwhile, from what was written there, by file name."""
    write_atomic(folder / SEAL, to_json(dict(digests)))


def damage(folder: Path) -> str | None:
    """What of a folder is not as it was written, in words; None where all is.

    One without a seal is believed: an earlier version made it.
    """
    try:
        sealed = msgspec.json.decode((folder / SEAL).read_bytes(), type=dict[str, str])
        found = _digests(folder)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        return f"{SEAL} cannot be read: {error}"
    for name in sealed:
        if name not in found:
            return f"{name} is missing"
        if found[name] != sealed[name]:
            return f"{name} is not what was written"
    return None


def discard(path: Path) -> None:
    """Take a file or folder away at once: a kill in the middle leaves nothing half-removed in its place."""
    with contextlib.suppress(OSError):
        aside = Path(tempfile.mkdtemp(prefix=prefix(path.name), dir=path.parent))
        with contextlib.suppress(OSError):
            path.rename(aside / path.name)
        shutil.rmtree(aside, ignore_errors=True)


def _seal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{SUFFIX}")


def _digests(folder: Path) -> dict[str, str]:
    """Relative path -> digest of every file below; not of what is temporary or has a seal of its own."""
    found = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(parent, name)
            own = name == SEAL or name.endswith(SUFFIX) or f"{name}{SUFFIX}" in names
            if not own and not name.startswith(".") and path.is_file():
                found[path.relative_to(folder).as_posix()] = digest_bytes(path.read_bytes())
    return found
