"""The second level of the artifact store, shared by checkouts, users and machines: $KERNELMILL_STORE.

In: entries and stage outputs that are asked for. Out: those that somebody else made already, copied into the
store of this checkout. What is made here is put there. Everything is named after all that it depends on, so
nothing needs a lock, nothing is ever changed, and what another machine would find different has another name.

A shared store is a path or a URL of fsspec. A name becomes visible when its file is whole: a path is written
through a temporary neighbour, as is a file system behind a URL (`sftp://`, `ftp://`, `smb://`, …); an object
store shows an object once it is sent. A shared store that fails costs its benefit and one line, never a
result.
"""

import functools
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pipeline.records import environment
from pipeline.records.errors import StoreError
from pipeline.records.layout import entry_path, output_path
from pipeline.records.outcome import Outcome
from pipeline.records.record import from_json
from pipeline.store.archive import SUFFIX, pack, unpack
from pipeline.store.atomic import new_folder, write_atomic
from pipeline.store.integrity import write_sealed

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


S = TypeVar("S", bound=msgspec.Struct)

ENTRIES, OUTPUTS = "store", "outputs"
RECORD = "record.json"
OUTPUT = "output.json"

NOT_SHARED = frozenset(
    {
        *(Outcome.UNSTABLE_TIMING, Outcome.OVER_ROOFLINE, Outcome.TIMEOUT, Outcome.CRASHED),
        *(Outcome.OUT_OF_MEMORY, Outcome.LAUNCH_ERROR, Outcome.NOT_JUDGED),
    }
)
"""What a busy or broken machine may have to answer for: somebody else tries it again."""


class _Result(msgspec.Struct):
    """As much of a result as is looked at here."""

    outcome: str | None = None


class _Ended(msgspec.Struct):
    """As much of a record as is looked at here."""

    entry: str | None = None
    result: _Result | None = None
    verdict: _Result | None = None
    """On a candidate from elsewhere."""

    @property
    def is_shared(self) -> bool:
        return all(each is None or each.outcome not in NOT_SHARED for each in (self.result, self.verdict))

    @property
    def is_stored(self) -> bool:
        """Whether it has an entry: what was not tried leaves nothing to keep."""
        not_tried = (Outcome.DEVICE_UNAVAILABLE, Outcome.PRUNED)
        return self.result is None or self.result.outcome not in not_tried


class _Output(msgspec.Struct):
    """As much of a stage's output as is looked at here."""

    records: list[_Ended] = []


class SharedStore:
    """A shared store as one process uses it."""

    def __init__(self, place: Location) -> None:
        self.place = place
        self._given_up: set[str] = set()

    @property
    def failed(self) -> bool:
        """Whether it refused something, which was reported."""
        return bool(self._given_up)

    def bring_entries(self, root: Path, stage: str, entries: Iterable[str]) -> int:
        """Copy those that are there and not here; how many."""
        missing = [entry for entry in dict.fromkeys(entries) if not entry_path(root, stage, entry).is_dir()]
        names = {entry_name(stage, entry): entry for entry in missing}
        brought = 0
        for name, contents in self._read(list(names)):
            brought += 1
            with new_folder(entry_path(root, stage, names[name])) as folder:
                _write(folder, contents)
        return brought

    def bring_outputs(self, root: Path, stage: str, wanted: Iterable[tuple[str, int]]) -> int:
        """Copy what a stage wrote, by key and round, with all entries that it names, or not at all."""
        names = {
            output_name(stage, key, number): output_path(root, stage, key, number)
            for key, number in dict.fromkeys(wanted)
            if not output_path(root, stage, key, number).is_file()
        }
        # All are read first: their entries are asked for together.
        found = {name: contents.get(OUTPUT, b"") for name, contents in self._read(list(names))}
        needed = {name: _entries_in(content) for name, content in found.items()}
        self.bring_entries(root, stage, (entry for entries in needed.values() for entry in entries))
        whole = [name for name in found if _are_here(root, stage, needed[name])]
        for name in whole:
            write_sealed(names[name], found[name])
        return len(whole)

    def put_entry(self, root: Path, stage: str, entry: str) -> bool:
        """Copy an entry that is here and not there; whether it was."""
        folder = entry_path(root, stage, entry)
        record = _decoded(_content(folder / RECORD), _Ended)
        if record is None or not record.is_shared:
            return False
        return self._put(entry_name(stage, entry), lambda: _contents(folder))

    def put_output(self, path: Path, stage: str, key: str, number: int) -> bool:
        """The same for what a stage wrote; not where somebody else should try a part of it again."""
        content = _content(path)
        output = _decoded(content, _Output)
        if output is None or not all(record.is_shared for record in output.records):
            return False
        return self._put(output_name(stage, key, number), lambda: {OUTPUT: content})

    def check(self, names: list[str]) -> int:
        """Read files and take away what is damaged; how many are whole."""
        return sum(1 for _ in self._read(names))

    def _read(self, names: list[str]) -> Iterator[tuple[str, dict[str, bytes]]]:
        if "read" in self._given_up or not names:
            return
        try:
            for name, parcel in self.place.read(names):
                contents = self._checked(name, parcel)
                if contents is not None:
                    yield name, contents
        except StoreError as error:
            self._give_up("read", error)

    def _checked(self, name: str, parcel: bytes) -> dict[str, bytes] | None:
        """None where it is damaged: it then makes way for a whole one."""
        try:
            return unpack(name, parcel)
        except StoreError as error:
            print(f"shared store {shown(self.place.url)}: {error}; it is made again", file=sys.stderr)
        try:
            self.place.remove(name)
        except StoreError as error:
            self._give_up("write", error)
        return None

    def _put(self, name: str, contents: Callable[[], Mapping[str, bytes]]) -> bool:
        if "write" in self._given_up:
            return False
        try:
            if self.place.has(name):
                return False
            self.place.put(name, pack(name, contents()))
        except (StoreError, OSError) as error:
            self._give_up("write", error)
            return False
        return True

    def _give_up(self, verb: str, error: Exception) -> None:
        """Once per process: an offline machine waits for no further time-outs."""
        if verb not in self._given_up:
            self._given_up.add(verb)
            print(f"going on without the shared store: {error}", file=sys.stderr)


def shared_store() -> SharedStore | None:
    """The one that the user names; None where there is none.

    Raises
    ------
    StoreError
        Its address cannot be used: no such protocol, or the package for it is not installed.
    """
    url = environment.shared_store()
    return _opened(url) if url else None


@functools.cache
def _opened(url: str) -> SharedStore:
    return SharedStore(Location(url))


def entry_name(stage: str, entry: str) -> str:
    """What an entry's parcel is kept under."""
    return f"{ENTRIES}/{stage}/{entry[:2]}/{entry}{SUFFIX}"


def output_name(stage: str, key: str, number: int) -> str:
    """What an output's parcel is kept under."""
    return f"{OUTPUTS}/{stage}/{key}/round{number}{SUFFIX}"


def _are_here(root: Path, stage: str, entries: Iterable[str]) -> bool:
    return all((entry_path(root, stage, entry) / RECORD).is_file() for entry in entries)


def _entries_in(content: bytes) -> list[str]:
    output = _decoded(content, _Output)
    records = output.records if output is not None else []
    return [record.entry for record in records if record.entry and record.is_stored]


def _decoded(content: bytes, kind: type[S]) -> S | None:
    try:
        return from_json(content, kind)
    except msgspec.DecodeError:
        return None


def _write(folder: Path, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _contents(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
