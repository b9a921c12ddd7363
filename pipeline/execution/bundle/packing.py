"""Pack a job: the project, its revision and the libraries that it needs in; one file that Python runs out."""

import io
import json
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipeline.execution.bundle import bootstrap
from pipeline.execution.bundle.libraries import BROUGHT, EXPECTED, Target, files_of, version_here, with_needs
from pipeline.records.errors import BundleError
from pipeline.records.record import Record, digest_bytes, digest_parts
from pipeline.store.atomic import write_atomic
from pipeline.store.provenance import REVISION, revision

FOLDERS = ("conf", "hydra_plugins", "kernels", "pipeline")
PARTS = (*FOLDERS, "pyproject.toml", "LICENSE")
_START = b"#!/usr/bin/env python3\n"
_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say: equal contents give equal files
_SKIPPED = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"})


class Packed(Record, frozen=True, kw_only=True):
    """A job that was packed."""

    identity: str
    size: int
    """Bytes of the file."""
    revision: str | None
    libraries: dict[str, str]


def pack(
    path: Path, overrides: tuple[str, ...], target: Target, *, extras: tuple[str, ...], root: Path
) -> Packed:
    """Write the job; `root` is the checkout.

    Raises
    ------
    BundleError
        Not a checkout, or a library cannot be had.
    StoreError
        No space, no permission.
    """
    commit = _revision(root)
    files = {f"project/{name}": content for name, content in _project(root)}
    if commit is not None:
        files[f"project/{REVISION}"] = f"{commit}\n".encode()
    libraries = with_needs(BROUGHT)
    for name, version in libraries.items():
        files |= {f"lib/{file}": content for file, content in files_of(name, version, target).items()}
    for name in extras:
        found = files_of(name, version_here(name), target)
        files |= {f"extra/{name}/{file}": content for file, content in found.items()}
    job = {
        "overrides": list(overrides),
        "python": target.python,
        "machine": target.machine,
        "revision": commit,
        "libraries": libraries,
        "extras": dict.fromkeys(extras, "where the machine has none"),
        "needed": list(EXPECTED),
    }
    identity = digest_parts({name: digest_bytes(content) for name, content in files.items()})
    job["identity"] = identity
    content = _zipped(job, files)
    write_atomic(path, content)
    return Packed(identity=identity, size=len(content), revision=commit, libraries=libraries)


def _zipped(job: Mapping[str, object], files: Mapping[str, bytes]) -> bytes:
    assert bootstrap.__file__ is not None
    first = {
        "__main__.py": Path(bootstrap.__file__).read_bytes(),
        bootstrap.JOB: json.dumps(job, sort_keys=True, indent=1).encode(),
    }
    stream = io.BytesIO()
    stream.write(_START)
    with zipfile.ZipFile(stream, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**first, **dict(sorted(files.items()))}.items():
            member = zipfile.ZipInfo(name, _TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o100644 << 16  # a regular file that its owner may write
            archive.writestr(member, content)
    return stream.getvalue()


def _project(root: Path) -> Iterator[tuple[str, bytes]]:
    """What a plan is made of; of a checkout, what git knows and what it does not ignore."""
    missing = [part for part in FOLDERS if not (root / part).is_dir()]
    if missing:
        raise BundleError(f"{root}: not a checkout of the project: it has no {', '.join(missing)}")
    names = _listed(root)
    for part in PARTS:
        top = root / part
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            name = path.relative_to(root).as_posix()
            if path.is_file() and not _SKIPPED & set(path.parts) and (names is None or name in names):
                yield name, path.read_bytes()


def _revision(root: Path) -> str | None:
    """As in every record; files that git does not know make it dirty as well, because they travel."""
    commit = revision(root)
    unknown = _git_files(root, "--others", "--exclude-standard")
    return f"{commit}+" if commit and unknown and not commit.endswith("+") else commit


def _listed(root: Path) -> frozenset[str] | None:
    """Tracked files and those that are not ignored; None where git cannot say."""
    return _git_files(root, "--cached", "--others", "--exclude-standard") or None


def _git_files(root: Path, *which: str) -> frozenset[str]:
    command = ["git", "ls-files", "-z", *which, "--", *PARTS]
    try:
        ended = subprocess.run(command, cwd=root, capture_output=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return frozenset()
    return frozenset(ended.stdout.decode().split("\0")) - {""}
