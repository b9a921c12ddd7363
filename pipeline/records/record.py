"""The base of all records, their JSON form, their digest, and checks of their fields."""

import functools
import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pipeline.records.errors import StoreError

DIGEST_LENGTH = 20  # hexadecimal digits: 80 bits, no collision to be feared among 1e9 records

T = TypeVar("T")

_BUILDING = threading.Lock()
"""msgspec (0.22) ends the process with a segmentation fault where two threads first read a type at once."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A frozen noun: no unknown fields, typed on every read, comparable by value."""


def to_json(value: object) -> bytes:
    """Canonical JSON: sorted keys, so equal records give equal bytes."""
    return msgspec.json.encode(value, order="deterministic")


def from_json(content: bytes, kind: type[T]) -> T:
    """The inverse; from any thread.

    Raises
    ------
    msgspec.DecodeError
        It is not JSON, or not a record of this kind.
    """
    with _BUILDING:
        decoder = _json_decoder(kind)  # type: ignore[arg-type]
    value: T = decoder.decode(content)
    return value


def from_message(content: bytes, kind: Any) -> Any:
    """The same for MessagePack."""
    with _BUILDING:
        decoder = _message_decoder(kind)
    return decoder.decode(content)


@functools.cache
def _json_decoder(kind: Any) -> "msgspec.json.Decoder[Any]":
    return msgspec.json.Decoder(kind)


@functools.cache
def _message_decoder(kind: Any) -> "msgspec.msgpack.Decoder[Any]":
    return msgspec.msgpack.Decoder(kind)


def digest(value: object) -> str:
    """Identity of a record (or of a plain JSON value), derived from the whole of it."""
    return hashlib.sha256(to_json(value)).hexdigest()[:DIGEST_LENGTH]


def digest_bytes(content: bytes | memoryview) -> str:
    """Identity of a file's content."""
    return hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]


def digest_parts(parts: Mapping[str, str]) -> str:
    """Identity of named digests, for example of several files."""
    return digest(dict(parts))


def read_record(path: Path, kind: type[T]) -> T:
    """Read and check one record.

    Raises
    ------
    StoreError
        The file is missing, truncated, or not a record of this kind.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read as {kind.__name__}: {error}") from error
    return parse_record(content, kind, path)


def parse_record(content: bytes, kind: type[T], path: Path) -> T:
    """The same of a file that was read already; `path` is for the error's text.

    Raises
    ------
    StoreError
        It is truncated, or not a record of this kind.
    """
    try:
        return from_json(content, kind)
    except msgspec.DecodeError as error:
        raise StoreError(f"{path}: cannot be read as {kind.__name__}: {error}") from error


def from_plain(value: Any, kind: type[T]) -> T:
    """Build a record from plain dicts and lists.

    Raises
    ------
    msgspec.ValidationError
        The value does not fit; its text ends with the path of the offending key.
    """
    return msgspec.convert(value, kind)


def at_least(record: Record, **least: float) -> None:
    """Raise ValueError for a field that is below its least value; an absent one is not."""
    for field, value in least.items():
        found = getattr(record, field)
        if found is not None and found < value:
            raise ValueError(f"{field}: expected at least {value:g}, got {found:g}")


def share(record: Record, *fields: str) -> None:
    """Raise ValueError for a field that is no share; an absent one is none that is wrong."""
    for field in fields:
        found = getattr(record, field)
        if found is not None and not 0 <= found <= 1:
            raise ValueError(f"{field}: expected a share from 0 to 1, got {found:g}")


def lacking(record: Record, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the fields that are absent."""
    return tuple([name for name in names if getattr(record, name) is None])


def require_all(record: Record, names: tuple[str, ...], what: str) -> None:
    """For what was found out here.

    Raises
    ------
    ValueError
        A field is absent.
    """
    absent = lacking(record, names)
    if absent:
        raise ValueError(f"{what} lacks {', '.join(absent)}: only a recorded one may be without")


def require_none(record: Record, names: tuple[str, ...], what: str) -> None:
    """For what was recorded elsewhere.

    Raises
    ------
    ValueError
        A field is there that the file could not tell.
    """
    absent = lacking(record, names)
    if len(absent) < len(names):
        present = ", ".join(name for name in names if name not in absent)
        raise ValueError(f"{what} that was recorded elsewhere has {present}: expected none, nothing tells it")
