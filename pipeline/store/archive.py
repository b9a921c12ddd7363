"""Files on their way between stores: a name and contents in, one checked file out; and back.

A parcel is a gzipped tar that begins with its manifest: what it is, and the SHA-256 of every file in it. So
one request moves an entry, it is there whole or not at all, and `tar xf` opens it. Nothing is unpacked by the
tar module: members are read into memory, and only what the manifest names is taken.
"""

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Mapping

import msgspec

from pipeline.records.errors import StoreError
from pipeline.records.record import Record, from_json, to_json

MANIFEST = "manifest.json"
FORMAT = 1
SUFFIX = ".tar.gz"
LARGEST = 2 << 30  # bytes unpacked: more is not held in memory
# No part begins with a dot, so neither `..` nor hidden files; no part is empty, so no absolute name.
_NAME = re.compile(r"[A-Za-z0-9_][\w.+,@=-]*(?:/[A-Za-z0-9_][\w.+,@=-]*)*", re.ASCII)


class Manifest(Record, frozen=True, kw_only=True):
    """What a parcel holds."""

    format: int = FORMAT
    name: str
    """What it is kept under: a parcel that was moved is not taken for another."""
    files: dict[str, str]
    """Path in the parcel -> SHA-256 of the file."""


def pack(name: str, contents: Mapping[str, bytes]) -> bytes:
    """The parcel's bytes: equal contents give equal ones.

    Raises
    ------
    StoreError
        A file has a name that no parcel can have.
    """
    strange = next((file for file in contents if not _NAME.fullmatch(file)), None)
    if strange is not None:
        raise StoreError(f"{name}: cannot be shared: a file is called {strange!r}")
    manifest = Manifest(name=name, files={file: _sha256(content) for file, content in contents.items()})
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file, content in {MANIFEST: to_json(manifest), **contents}.items():
            member = tarfile.TarInfo(file)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(stream.getvalue(), compresslevel=6, mtime=0)


def unpack(name: str, parcel: bytes) -> dict[str, bytes]:
    """The files by path, every one checked.

    Raises
    ------
    StoreError
        Truncated, changed, another parcel than its name says, or of another version.
    """
    members = _members(name, parcel)
    try:
        manifest = from_json(members.pop(MANIFEST, b""), Manifest)
    except msgspec.DecodeError as error:
        raise StoreError(f"{name}: damaged: {error}") from error
    if manifest.format != FORMAT:
        raise StoreError(f"{name}: of format {manifest.format}, this version reads {FORMAT}")
    if manifest.name != name:
        raise StoreError(f"{name}: damaged: it is {manifest.name}")
    found = {file: _sha256(content) for file, content in members.items()}
    wrong = sorted(file for file, _ in found.items() ^ manifest.files.items())
    if wrong:
        raise StoreError(f"{name}: damaged: {wrong[0]} is not what its manifest says")
    return members


def _members(name: str, parcel: bytes) -> dict[str, bytes]:
    try:
        with gzip.open(io.BytesIO(parcel)) as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise StoreError(f"{name}: damaged: more than {LARGEST:,} bytes")
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            return {member.name: _read(archive, member) for member in archive}
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise StoreError(f"{name}: damaged: {error}") from error


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member) if member.isfile() else None
    if file is None or not _NAME.fullmatch(member.name):
        raise tarfile.TarError(f"{member.name!r} is no plain file")
    return file.read()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
