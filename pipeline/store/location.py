"""Where parcels are shared: a path or a URL of fsspec in; files read, written once and listed by name.

A name becomes visible when its file is whole. A path is written through a temporary neighbour, as is a file
system behind a URL (`sftp://`, `ftp://`, `smb://`, …); an object store shows an object when it was sent.
"""

import functools
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pipeline.records.errors import StoreError
from pipeline.store.atomic import write_atomic

T = TypeVar("T")

AT_ONCE = 32  # files asked for together: what fsspec fetches side by side, and what is held in memory
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "memory"})
"""Protocols that show an object when it was sent whole; all others are written under another name first."""


class Location:
    """A folder on this machine, on a shared file system, or somewhere else."""

    def __init__(self, url: str) -> None:
        """Open it; nothing is asked of it yet.

        Raises
        ------
        StoreError
            fsspec does not know the protocol, or the package that speaks it is not installed.
        """
        import fsspec

        self.url = url
        self._lock = threading.Lock()  # not every file system can be used by several threads
        try:
            self._system, self._base = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError, OSError) as error:
            raise StoreError(f"{shown(url)}: cannot be opened: {_line(error)}") from error
        protocol = self._system.protocol
        names = {protocol} if isinstance(protocol, str) else set(protocol)
        self._is_local = "file" in names
        self._is_object_store = bool(names & OBJECT_STORES)

    def read(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Name and content of those that are there.

        Raises
        ------
        StoreError
            It does not answer, or does not let us read.
        """
        for start in range(0, len(names), AT_ONCE):
            paths = {f"{self._base}/{name}": name for name in names[start : start + AT_ONCE]}
            found = self._ask(functools.partial(self._system.cat, list(paths), on_error="return"))
            for path, content in found.items():
                if isinstance(content, bytes):
                    yield paths[path], content
                elif not isinstance(content, FileNotFoundError):
                    raise StoreError(f"{shown(self.url)}: {_line(content)}") from content

    def has(self, name: str) -> bool:
        """Whether it is there."""
        return bool(self._ask(functools.partial(self._system.exists, f"{self._base}/{name}")))

    def put(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all.

        Raises
        ------
        StoreError
            No permission, no space, no answer.
        """
        path = f"{self._base}/{name}"
        if self._is_local:
            write_atomic(Path(path), content)
        elif self._is_object_store:
            self._ask(functools.partial(self._system.pipe_file, path, content))
        else:
            self._ask(functools.partial(self._put_renamed, path, content))

    def remove(self, name: str) -> None:
        """Take a file away."""
        self._ask(functools.partial(self._system.rm_file, f"{self._base}/{name}"))

    def sizes(self, folder: str) -> dict[str, int]:
        """Name -> bytes of all files in a folder and below; empty where there is none."""
        path = f"{self._base}/{folder}"
        self._ask(functools.partial(self._system.invalidate_cache))
        found = self._ask(functools.partial(self._system.find, path, detail=True))
        names = {file.removeprefix(f"{self._base}/"): info for file, info in found.items()}
        whole = {name: info for name, info in names.items() if not name.rpartition("/")[2].startswith(".")}
        return {name: int(info["size"] or 0) for name, info in whole.items()}

    def _put_renamed(self, path: str, content: bytes) -> None:
        folder, _, name = path.rpartition("/")
        early = f"{folder}/.{name}.{uuid.uuid4().hex[:12]}"
        self._system.makedirs(folder, exist_ok=True)
        self._system.pipe_file(early, content)
        self._system.mv(early, path)

    def _ask(self, action: Callable[[], T]) -> T:
        """Errors of every file system have their own classes: here they become ours."""
        try:
            with self._lock:
                return action()
        except Exception as error:
            raise StoreError(f"{shown(self.url)}: {_line(error)}") from error


def shown(url: str) -> str:
    """A URL without a password, for messages."""
    head, mark, rest = url.partition("://")
    if not mark or "@" not in rest.partition("/")[0]:
        return url
    user, _, host = rest.partition("@")
    return f"{head}://{user.partition(':')[0]}@{host}"


def _line(error: Any) -> str:
    text = " ".join(str(error).split())[:200]
    return text or type(error).__name__
