"""The second level of the artifact store, shared by checkouts, users and machines: $KERNELMILL_STORE.

In: entries and stage outputs that are asked for. Out: those that somebody else made already, copied into the
store of this checkout. What is made here is put there. Everything is named after all that it depends on, so
nothing needs a lock, nothing is ever changed, and what another machine would find different has another name.

A shared store that fails costs its benefit and one line, never a result.
"""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from pipeline.records import environment
from pipeline.records.errors import StoreError
from pipeline.records.layout import entry_path, output_path
from pipeline.records.outcome import Outcome
from pipeline.records.record import from_json
from pipeline.store.archive import SUFFIX, pack, unpack
from pipeline.store.atomic import new_folder
from pipeline.store.integrity import write_sealed
from pipeline.store.location import Location, shown

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
        """Whether it refused something, which was told."""
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
        """Once per process: whoever is offline waits for no further time-outs."""
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
