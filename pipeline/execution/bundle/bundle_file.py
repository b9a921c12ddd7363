"""The bundle as a file: a manifest and contents in, a compressed tar out; and back, with everything checked.

Nothing of a bundle is unpacked by the tar module: members are read one by one into memory, and only regular
files that the manifest names, with its sizes and checksums, are taken.
"""

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pipeline.execution.stage_commands import FinishedStage
from pipeline.records.errors import BundleError
from pipeline.records.provenance import Origin
from pipeline.records.record import Record, digest_bytes, to_json
from pipeline.store.atomic import write_atomic

SCHEMA = 1
"""Raise it when what a bundle holds changes: an older reader then says so instead of guessing."""
MANIFEST = "manifest.json"
PLAN = "plan.json"
SPEC = "aggregate.json"
"""The AggregateSpec of the tasks that finished."""


class TaskEnd(Record, frozen=True, kw_only=True):
    """How a task of the plan ended there."""

    name: str
    """kernel x workload x hardware x optimization"""
    missing: str | None
    """None if all its stages finished; otherwise what is missing and why."""
    outcomes: dict[str, dict[str, int]]
    """Stage -> outcome -> how many variants."""


class BundledFile(Record, frozen=True, kw_only=True):
    """A file of the bundle."""

    name: str
    sha256: str
    size: int
    """Bytes."""
    cut_from: int | None = None
    """Bytes of the original where the middle was cut out; None where it is whole."""


class LeftOut(Record, frozen=True, kw_only=True):
    """A file that stayed on the machine where it was made."""

    name: str
    sha256: str
    size: int
    reason: str


class BundleManifest(Record, frozen=True, kw_only=True):
    """First file of a bundle."""

    schema_version: int = SCHEMA
    experiment: str
    description: str
    overrides: tuple[str, ...]
    created: str
    """UTC, ISO 8601."""
    git: str | None
    device: str
    environment: dict[str, str]
    tasks: tuple[TaskEnd, ...]
    jobs: tuple[FinishedStage, ...]
    files: tuple[BundledFile, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def identity(self) -> str:
        """Identity of the bundle."""
        return digest_bytes(to_json(self))

    @property
    def origin(self) -> Origin:
        """The machine, for the records that are made of this bundle."""
        return Origin(
            bundle=self.identity, created=self.created, device=self.device, environment=self.environment
        )


def sha256(content: bytes) -> str:
    """Checksum of a file, in full."""
    return hashlib.sha256(content).hexdigest()


LARGEST = 2 << 30  # bytes unpacked: more is not held in memory
CHUNK = 1 << 20
SUFFIX = ".kmb"
# No part begins with a dot, so neither `..` nor hidden files; no part is empty, so no absolute name.
_NAME = re.compile(r"[A-Za-z0-9_][\w.+,@=-]*(?:/[A-Za-z0-9_][\w.+,@=-]*)*", re.ASCII)
_XZ, _GZIP = b"\xfd7zXZ\x00", b"\x1f\x8b"


class Bundle(Record, frozen=True, kw_only=True):
    """A bundle that was read and whose checksums are right."""

    path: str
    manifest: BundleManifest
    contents: dict[str, bytes]


class _Version(msgspec.Struct):
    """What every version of a manifest has."""

    schema_version: int


def packed(manifest: BundleManifest, contents: Mapping[str, bytes]) -> bytes:
    """The bundle's bytes: equal contents give equal ones."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in {MANIFEST: to_json(manifest), **contents}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    try:
        import lzma
    except ImportError:  # a Python that was built without it
        return gzip.compress(stream.getvalue(), mtime=0)
    return lzma.compress(stream.getvalue(), preset=6)


def write_bundle(path: Path, content: bytes) -> None:
    """Write it whole or not at all.

    Raises
    ------
    StoreError
        No space, no permission.
    """
    write_atomic(path, content)


def read_bundle(path: Path) -> Bundle:
    """Read a bundle and check every file of it.

    Raises
    ------
    BundleError
        Not a bundle, damaged, truncated, of another version, or with names that no bundle has.
    """
    members = _members(path, _unpacked(path))
    if MANIFEST not in members:
        raise BundleError(f"{path}: not a bundle: it has no {MANIFEST}")
    manifest = _manifest(path, members.pop(MANIFEST))
    known = {file.name: file for file in manifest.files}
    if len(known) != len(manifest.files):
        raise BundleError(f"{path}: damaged: its manifest names a file twice")
    for name in known.keys() | members.keys():
        if name not in members:
            raise BundleError(f"{path}: damaged: {name} is missing (copy the file again)")
        if name not in known:
            raise BundleError(f"{path}: damaged: {name} is not in its manifest")
        if len(members[name]) != known[name].size or sha256(members[name]) != known[name].sha256:
            raise BundleError(f"{path}: damaged: {name} differs from its checksum (copy the file again)")
    return Bundle(path=str(path), manifest=manifest, contents=members)


def check_name(path: Path | str, name: str) -> None:
    """Refuse a name that could lead out of the folder it is put in.

    Raises
    ------
    BundleError
        An absolute name, `..`, or letters that no file of a bundle has.
    """
    if not _NAME.fullmatch(name):
        raise BundleError(f"{path}: refused: {name[:100]!r} is not a name that a bundle can hold")


def _unpacked(path: Path) -> bytes:
    """The tar; its compression's own checksum is checked by reading to the end."""
    try:
        with path.open("rb") as stream:
            magic = stream.read(len(_XZ))
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror or error}") from None
    if magic == _XZ:
        import lzma

        broken: tuple[type[Exception], ...] = (lzma.LZMAError, EOFError)
        opened: io.BufferedIOBase = lzma.open(path)  # noqa: SIM115  (closed below)
    elif magic.startswith(_GZIP):
        broken = (gzip.BadGzipFile, EOFError, zlib.error)
        opened = gzip.open(path)  # noqa: SIM115  (closed below)
    else:
        raise BundleError(f"{path}: not a bundle (expected a {SUFFIX} file that `bundle run` wrote)")
    parts, size = [], 0
    with opened as stream:
        try:
            while part := stream.read(CHUNK):
                size += len(part)
                if size > LARGEST:
                    raise BundleError(f"{path}: refused: it unpacks to more than {LARGEST >> 30} GiB")
                parts.append(part)
        except broken as error:
            raise BundleError(f"{path}: damaged or truncated (copy the file again): {error}") from None
    return b"".join(parts)


def _members(path: Path, tar: bytes) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as archive:
            for member in archive:
                check_name(path, member.name)
                if not member.isreg():
                    raise BundleError(f"{path}: refused: {member.name} is a link or something not a file")
                if member.name in members:
                    raise BundleError(f"{path}: refused: it holds {member.name} twice")
                stream = archive.extractfile(member)
                assert stream is not None  # a regular file has content
                members[member.name] = stream.read()
    except tarfile.TarError as error:
        raise BundleError(f"{path}: damaged (copy the file again): {error}") from None
    return members


def _manifest(path: Path, content: bytes) -> BundleManifest:
    try:
        version = msgspec.json.decode(content, type=_Version).schema_version
        if version != SCHEMA:
            raise BundleError(
                f"{path}: a bundle of schema version {version}, this Kernelmill reads {SCHEMA}: "
                "pack, run and ingest with one version"
            )
        return msgspec.json.decode(content, type=BundleManifest)
    except msgspec.DecodeError as error:
        raise BundleError(f"{path}: damaged: its {MANIFEST} cannot be read: {error}") from None
