"""Pack a job: the project, its revision and its libraries in; one file that Python runs out.

Libraries that are pure Python, or built for the same Python and processor, are taken from this environment in
their versions; the others are fetched with pip in the same versions, so only they need the network.
"""

import importlib.metadata
import io
import json
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution
from pathlib import Path

from pipeline.execution.bundle import bootstrap
from pipeline.records.errors import BundleError
from pipeline.records.record import Record, digest_bytes, digest_parts
from pipeline.store.atomic import write_atomic
from pipeline.store.current_provenance import REVISION, revision

FOLDERS = ("conf", "hydra_plugins", "kernels", "pipeline")
PARTS = (*FOLDERS, "pyproject.toml", "LICENSE")
_START = b"#!/usr/bin/env python3\n"
_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say: equal contents give equal files
_SKIPPED = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"})

SEEDS = "seeds"
"""Folder of the project in a job: bundles that came from there before."""
BROUGHT = ("click", "grimp", "hydra-core", "msgspec", "nvidia-ml-py", "omegaconf", "simpleeval")
"""What planning and the stages import and a machine for torch and Triton does not have."""
EXPECTED = ("numpy", "torch")
"""Modules that the machine has to have: they fit its driver."""
_BUILT = (".so", ".pyd")
_USELESS = (".c", ".pyc", ".pyi")
# PEP 600; 2.28 is what torch's own wheels need.
_GLIBC = ("2_28", "2_27", "2_24", "2_17", "2_12", "2_5")
_LEGACY = {"2_17": "2014", "2_12": "2010", "2_5": "1"}
_SECONDS = 600


class TargetPython(Record, frozen=True, kw_only=True):
    """The Python of the machine where a job runs."""

    python: str
    """`3.12`"""
    machine: str
    """`x86_64`, `aarch64`"""

    @property
    def tag(self) -> str:
        """In the names of extension modules: `cpython-312`."""
        return f"cpython-{self.python.replace('.', '')}"

    @property
    def is_here(self) -> bool:
        """Whether what is built for this Python runs there."""
        here = (f"{sys.version_info[0]}.{sys.version_info[1]}", platform.machine(), sys.platform)
        return here == (self.python, self.machine, "linux")


class Packed(Record, frozen=True, kw_only=True):
    """A job that was packed."""

    identity: str
    size: int
    """Bytes of the file."""
    revision: str | None
    libraries: dict[str, str]


def pack(  # noqa: PLR0913  (each of them is a part of the job)
    path: Path,
    overrides: tuple[str, ...],
    target: TargetPython,
    *,
    extras: tuple[str, ...],
    after: tuple[Path, ...] = (),
    runs: str = bootstrap.EXPERIMENT,
    root: Path,
) -> Packed:
    """Write the job; `root` is the checkout. What the bundles in `after` hold is not done again there.

    `runs`: `bootstrap.EXPERIMENT` or `bootstrap.CHECK`.

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
    for bundle in after:
        content = bundle.read_bytes()
        files[f"project/{SEEDS}/{digest_bytes(content)}.kmb"] = content
    libraries = with_needs(BROUGHT)
    for name, version in libraries.items():
        files |= {f"lib/{file}": content for file, content in files_of(name, version, target).items()}
    for name in extras:
        found = files_of(name, version_here(name), target)
        files |= {f"extra/{name}/{file}": content for file, content in found.items()}
    job = {
        "runs": runs,
        "overrides": list(overrides),
        "python": target.python,
        "machine": target.machine,
        "revision": commit,
        "libraries": libraries,
        "extras": {name: version_here(name) for name in extras},
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


def with_needs(names: tuple[str, ...]) -> dict[str, str]:
    """Libraries with all that they need -> version, as they are installed here.

    Raises
    ------
    BundleError
        One is not installed here.
    """
    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    todo = list(names)
    while todo:
        name = _normal(todo.pop())
        if name in found:
            continue
        distribution = _installed(name)
        found[name] = distribution.version
        needs = [Requirement(text) for text in distribution.requires or ()]
        todo += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return dict(sorted(found.items()))


def version_here(name: str) -> str:
    """The version that is installed here; empty where none is."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def files_of(name: str, version: str, target: TargetPython) -> dict[str, bytes]:
    """Files of one library for the target, by their place in site-packages.

    Raises
    ------
    BundleError
        It has to be fetched, and cannot be.
    """
    try:
        here = _installed(name) if _installed(name).version == version else None
    except BundleError:
        here = None
    files = dict(_local(here)) if here else {}
    if files and (target.is_here or not any(path.endswith(_BUILT) for path in files)):
        return _useful(files, target)
    return _useful(_fetched(name, version, target), target)


def _installed(name: str) -> Distribution:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        raise BundleError(
            f"{name} is not installed here: a job is packed from a complete environment"
        ) from None


def _local(distribution: Distribution) -> Iterator[tuple[str, bytes]]:
    """Without scripts, which lie outside of the library's folder."""
    for file in distribution.files or ():
        path = Path(str(distribution.locate_file(file)))
        if ".." not in file.parts and path.is_file():
            yield file.as_posix(), path.read_bytes()


def _fetched(name: str, version: str, target: TargetPython) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="kernelmill-") as folder:
        platforms = [f"--platform={each}" for each in _platforms(target.machine)]
        command = [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"),
            *("--python-version", target.python, "--implementation", "cp", *platforms),
            *("--dest", folder, f"{name}=={version}" if version else name),
        ]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if ended.returncode or not wheels:
            reason = (ended.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise BundleError(
                f"{name} {version} for Python {target.python} on {target.machine}: not installed here for "
                f"it, and pip cannot fetch it ({reason}): pack with network, or under Python {target.python}"
            )
        with zipfile.ZipFile(wheels[0]) as wheel:
            return {file: wheel.read(file) for file in wheel.namelist() if not file.endswith("/")}


def _platforms(machine: str) -> Iterator[str]:
    for glibc in _GLIBC:
        yield f"manylinux_{glibc}_{machine}"
        if glibc in _LEGACY:
            yield f"manylinux{_LEGACY[glibc]}_{machine}"


def _useful(files: dict[str, bytes], target: TargetPython) -> dict[str, bytes]:
    """Without sources of C, caches, and what is built for another Python."""
    return {
        name: content
        for name, content in files.items()
        if not name.endswith(_USELESS)
        and "__pycache__" not in name
        and (target.tag in name or not re.search(r"\.cpython-\d+", name))
    }


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
