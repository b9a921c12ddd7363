"""A shared store by hand: what is there, upload to it, download from it. A run does both by itself."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.plan.plan_cache import current_plan
from pipeline.records import environment
from pipeline.records.errors import StoreError
from pipeline.records.layout import STAGES, spec_path
from pipeline.records.record import Record
from pipeline.store.archive import SUFFIX
from pipeline.store.outputs import bring_outputs, is_whole
from pipeline.store.shared_store import (
    ENTRIES,
    OUTPUTS,
    RECORD,
    SharedStore,
    entry_name,
    output_name,
    shared_store,
    shown,
)

ENTRY_STAGES = (*STAGES, "mutate", "judge", "timing")


class Item(Record, frozen=True, kw_only=True):
    """An entry (of a stage, by its digest) or an output (of a stage, by key and round)."""

    stage: str
    key: str
    round: int | None = None
    """None for an entry."""

    @property
    def name(self) -> str:
        """What it is kept under."""
        if self.round is None:
            return entry_name(self.stage, self.key)
        return output_name(self.stage, self.key, self.round)


class StoreSync:
    """One checkout's store and the one that it shares.

    Raises
    ------
    StoreError
        No shared store is named, or it cannot be reached.
    """

    def __init__(self, store: str | None, root: Path) -> None:
        """`store` is a path or a URL of fsspec; None: $KERNELMILL_STORE."""
        if store:
            environment.use_shared_store(store)
        shared = shared_store()
        if shared is None:
            raise StoreError("no shared store: name it with --store PATH|URL or $KERNELMILL_STORE")
        self._shared = shared
        self._root = root

    @property
    def failed(self) -> bool:
        """Whether the store refused something."""
        return self._shared.failed

    def pull(self, overrides: Sequence[str]) -> Iterator[str]:
        """Download what exists there of a plan."""
        plan = current_plan(tuple(overrides), root=Path.cwd(), store=self._root)
        count = bring_outputs(self._shared, [task.row for task in plan.tasks], self._root)
        yield f"{count} stage outputs came with what they name; the rest of this plan is here or is not there"

    def status(self) -> Iterator[str]:
        """Counts by stage."""
        sizes = self._shared.place.sizes(ENTRIES) | self._shared.place.sizes(OUTPUTS)
        here = [item.name for item in _here(self._root)]
        yield f"{shown(self._shared.place.url)}: {len(sizes):,} files, {sum(sizes.values()) / 1e6:,.1f} MB"
        yield f"{'':18}{'here':>10}{'there':>10}{'only here':>11}{'only there':>12}"
        for kind, stages in ((ENTRIES, ENTRY_STAGES), (OUTPUTS, STAGES)):
            for stage in stages:
                ours = {name for name in here if name.startswith(f"{kind}/{stage}/")}
                theirs = {name for name in sizes if name.startswith(f"{kind}/{stage}/")}
                if ours or theirs:
                    label = f"{stage} {'entries' if kind == ENTRIES else 'outputs'}"
                    here_only, there_only = len(ours - theirs), len(theirs - ours)
                    yield f"{label:18}{len(ours):>10,}{len(theirs):>10,}{here_only:>11,}{there_only:>12,}"

    def push(self) -> Iterator[str]:
        """Upload everything that is here and not there."""
        there = self._shared.place.sizes(ENTRIES).keys() | self._shared.place.sizes(OUTPUTS).keys()
        missing = [item for item in _here(self._root) if item.name not in there]
        sent = sum(_put(self._shared, self._root, item) for item in missing)
        yield f"{sent:,} sent to {shown(self._shared.place.url)}, {len(missing) - sent:,} kept here"

    def pull_all(self) -> Iterator[str]:
        """Download everything."""
        items = _there(self._shared)
        entries = outputs = 0
        for stage in dict.fromkeys((*STAGES, *ENTRY_STAGES)):
            mine = [item for item in items if item.stage == stage]
            entries += self._shared.bring_entries(
                self._root, stage, [item.key for item in mine if item.round is None]
            )
            outputs += self._shared.bring_outputs(
                self._root, stage, [(item.key, item.round) for item in mine if item.round is not None]
            )
        yield f"{entries:,} entries and {outputs:,} stage outputs came from {shown(self._shared.place.url)}"

    def check(self) -> Iterator[str]:
        """Read everything there; what is damaged is removed."""
        names = [item.name for item in _there(self._shared)]
        whole = self._shared.check(names)
        yield f"{whole:,} of {len(names):,} are whole; what is damaged was removed"


def _put(shared: SharedStore, root: Path, item: Item) -> bool:
    if item.round is None:
        return shared.put_entry(root, item.stage, item.key)
    path = root / item.stage / item.key / f"round{item.round}.json"
    return shared.put_output(path, item.stage, item.key, item.round)


def _here(root: Path) -> Iterator[Item]:
    """What could be shared: whole entries, and outputs whose key is that of their spec."""
    for stage in ENTRY_STAGES:
        for path in sorted((root / ENTRIES / stage).glob(f"*/*/{RECORD}")):
            yield Item(stage=stage, key=path.parent.name)
    for stage in STAGES:
        for path in sorted((root / stage).glob("*/round*.json")):
            key, number = path.parent.name, path.stem.removeprefix("round")
            if number.isdigit() and is_whole(spec_path(root, stage, key)):
                yield Item(stage=stage, key=key, round=int(number))


def _there(shared: SharedStore) -> list[Item]:
    items = []
    for name in sorted(shared.place.sizes(ENTRIES).keys() | shared.place.sizes(OUTPUTS).keys()):
        kind, stage, folder, last = (*name.removesuffix(SUFFIX).split("/"), "", "", "")[:4]
        number = last.removeprefix("round")
        if kind == ENTRIES:
            items.append(Item(stage=stage, key=last))
        elif number.isdigit():
            items.append(Item(stage=stage, key=folder, round=int(number)))
    return [item for item in items if item.name.endswith(SUFFIX) and item.stage and item.key]
