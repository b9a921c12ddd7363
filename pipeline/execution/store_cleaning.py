"""What the artifact store holds, by age and size, and what no result refers to: listed, or removed.

A result is an experiment whose tables are there, or a judged problem. It refers to its outputs, to the store
entries that these name, and to the specs and logs of its keys. What a clean removes can be made again.
"""

import contextlib
import os
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from pipeline.performance.quantities import counted
from pipeline.records.errors import StoreError
from pipeline.records.record import Record, read_record
from pipeline.records.results.judged import JudgeOutput
from pipeline.records.results.timed import TimingOutput
from pipeline.stages.table import STAGES, rounds
from pipeline.store.integrity import discard

DAY = 86400.0
KEYED = tuple(stage.name for stage in rounds())
JUDGE, TIMING = "judge", "timing"
CONTENT = {
    "store/generate": "written sources (store/generate)",
    "store/compile": "compiled variants (store/compile)",
    "store/verify": "verdicts (store/verify)",
    "store/profile": "measurements (store/profile)",
    "store/judge": "judged candidates (store/judge)",
    "store/timing": "measured candidates (store/timing)",
    "store/mutate": "mutants (store/mutate)",
    "store/aggregate": "rows of tables (store/aggregate)",
    "store/track": "what was logged (store/track)",
}
"""What a user calls a kind."""
NEEDED_FOR = {
    "store/mutate": "the next mutation score reads them",
    "store/aggregate": "they make the next tables cheap",
    "store/track": "they make the next logging cheap",
}
"""Why kinds are kept to which no result refers."""


class _Variant(msgspec.Struct):
    source_digest: str = ""


class _Named(msgspec.Struct):
    entry: str
    variant: _Variant | None = None


class _Output(msgspec.Struct):
    records: list[_Named] = []


class _Keys(msgspec.Struct):
    """As much of a task's row as says where its outputs are."""

    generate: str
    compile: str
    verify: str
    profile: str


class _Tasks(msgspec.Struct):
    tasks: list[_Keys]


class StoredItem(Record, frozen=True, kw_only=True):
    """A folder or file that is kept or removed whole."""

    kind: str
    """`store/compile`, `verify outputs`, …"""
    path: str
    bytes: int
    age_days: float
    """Since it was written."""
    needed: bool
    """Whether a result refers to it."""


class StoreContents(Record, frozen=True, kw_only=True):
    """All of them."""

    items: tuple[StoredItem, ...]

    def removable(self, older_than: float) -> list[StoredItem]:
        """What no result needs, and is older than so many days."""
        return [each for each in self.items if not each.needed and each.age_days >= older_than]


def find_contents(root: Path) -> StoreContents:
    """Read what results there are, and look at every entry; nothing is removed."""
    entries, keys = _needed(root)
    now = time.time()
    items = []
    for stage in (*KEYED, JUDGE, TIMING, "mutate"):
        for folder in sorted((root / "store" / stage).glob("??/*")):
            items.append(_item(f"store/{stage}", folder, now, needed=(stage, folder.name) in entries))
    for stage in ("aggregate", "track"):  # what makes the next tables cheap
        for folder in sorted((root / "store" / stage).glob("??/*")):
            items.append(_item(f"store/{stage}", folder, now, needed=True))
    for stage in KEYED:
        for folder in sorted((root / stage).glob("*")):
            items.append(_item(f"{stage} outputs", folder, now, needed=(stage, folder.name) in keys))
        for folder in sorted((root / "logs" / stage).glob("*")):
            items.append(_item("logs", folder, now, needed=(stage, folder.name) in keys))
    return StoreContents(items=tuple(items))


def _needed(root: Path) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """(stage, entry) and (stage, key) of everything that results refer to."""
    entries: set[tuple[str, str]] = set()
    keys: set[tuple[str, str]] = set()
    for row in _rows(root):
        for stage in KEYED:
            key = getattr(row, stage)
            if (stage, key) not in keys:
                keys.add((stage, key))
                entries |= set(_entries(root / stage / key, stage))
    for path in (root / JUDGE).glob("*.json"):
        try:
            found = read_record(path, JudgeOutput).verdicts
        except StoreError:  # the next run makes it again
            continue
        ids = [verdict.id for verdict in found if verdict.id]
        entries |= {
            (JUDGE, each.name) for id in ids for each in (root / "store" / JUDGE).glob(f"{id[:2]}/{id}*")
        }
    for path in (root / TIMING).glob("*.json"):
        with contextlib.suppress(StoreError):  # the next run makes it again
            entries |= {(TIMING, each.entry) for each in read_record(path, TimingOutput).records}
    entries |= {("mutate", folder.name) for folder in (root / "store" / "mutate").glob("??/*")}
    return entries, keys


def _rows(root: Path) -> Iterator[_Keys]:
    """The tasks of all experiments with tables."""
    for summary in sorted((root / "aggregate").glob("*/summary.json")):
        spec = STAGES["aggregate"].spec_path(root, summary.parent.name)
        try:
            yield from read_record(spec, _Tasks).tasks
        except StoreError as error:
            raise StoreError(
                f"{spec}: cannot be read, so nobody knows what {summary.parent} refers to: nothing was "
                f"removed; make it again (kernelmill run) or remove {summary.parent}"
            ) from error


def _entries(folder: Path, stage: str) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("round*.json")):
        for record in read_record(path, _Output).records:
            yield stage, record.entry
            if record.variant is not None:  # a written source lies in an entry of its own
                yield "generate", record.variant.source_digest


def _item(kind: str, path: Path, now: float, *, needed: bool) -> StoredItem:
    size, newest = 0, path.stat().st_mtime
    for parent, _, names in os.walk(path):
        for name in names:
            status = Path(parent, name).lstat()
            size += status.st_blocks * 512
            newest = max(newest, status.st_mtime)
    age = max(0.0, now - newest) / DAY
    return StoredItem(kind=kind, path=str(path), bytes=size, age_days=round(age, 3), needed=needed)


def remove_items(items: Iterable[StoredItem]) -> None:
    """Remove them, outputs before the entries that they name: a kill in between leaves nothing half-named."""
    for each in sorted(items, key=lambda item: item.kind.startswith("store/")):
        path = Path(each.path)
        if path.is_dir() and not each.kind.startswith("store/"):
            shutil.rmtree(path)
        elif path.exists():
            discard(path)


def contents_rows(contents: StoreContents, older_than: float) -> list[tuple[str, ...]]:
    """A row for each kind: how many, how large, how old, and what would be removed."""
    kinds: dict[str, list[StoredItem]] = defaultdict(list)
    for each in contents.items:
        kinds[each.kind].append(each)
    removable = set(contents.removable(older_than))
    rows: list[tuple[str, ...]] = [
        ("what", "items", "size", "oldest", "newest", "removable", "its size", "kept because")
    ]
    for kind, several in kinds.items():
        chosen = [each for each in several if each in removable]
        needed = sum(each.needed for each in several)
        young = len(several) - needed - len(chosen)
        why = [NEEDED_FOR.get(kind, f"results refer to {needed:,}")] if needed else []
        why += [f"{young:,} written less than {older_than:g} days ago"] if young else []
        rows.append(
            (
                CONTENT.get(kind, kind),
                f"{len(several):,}",
                size_text(sum(each.bytes for each in several)),
                age_text(max(each.age_days for each in several)),
                age_text(min(each.age_days for each in several)),
                f"{len(chosen):,}",
                size_text(sum(each.bytes for each in chosen)),
                "; ".join(why) or "-",
            )
        )
    return rows


def size_text(size: float) -> str:
    """`4.0 KiB`, `1.2 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def age_text(days: float) -> str:
    """`just now`, `20 minutes ago`, `3 hours ago`, `12 days ago`."""
    minutes = round(days * 24 * 60)
    if not minutes:
        return "just now"
    if minutes < 120:
        return f"{counted(minutes, 'minute')} ago"
    return f"{counted(round(minutes / 60), 'hour') if days < 2 else counted(round(days), 'day')} ago"
