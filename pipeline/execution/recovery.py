"""Before a run: what was damaged or left half-made since the last one goes, so that the run makes it again.

In: a plan and the artifact store, whose lock is held. Out: the store without the files that are not what was
written, one line for each. Every output of the plan is compared with its seal. Store entries are looked at
where a later stage will use them; `kernelmill check` looks at all.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pipeline.records.errors import StoreError
from pipeline.records.layout import entry_name, entry_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.planned_tasks import Plan, PlannedTask
from pipeline.records.record import read_record
from pipeline.records.results.tracked import Tracked, TrackOutput
from pipeline.stages.table import STAGES, final, later, read_round, rounds
from pipeline.store.entries import remove_damaged
from pipeline.store.integrity import SEAL, damage, discard, is_damaged
from pipeline.store.temporary import SCRATCH, sweep
from pipeline.track.stores.mlflow_store import holds

NOT_STORED = frozenset({Outcome.DEVICE_UNAVAILABLE, Outcome.PRUNED})


class _Entry(msgspec.Struct):
    """As much of a record as says where it is kept: whole ones take five times as long to read."""

    entry: str


class _Named(msgspec.Struct):
    """The same of a stage's output."""

    records: list[_Entry]


def recover(plan: Plan, root: Path) -> None:
    """Remove what the plan's run must not use."""
    sweep(Path(tempfile.gettempdir()), *_folders(root))
    for path in _outputs(plan, root):
        if is_damaged(path):
            remove(path, "not what was written")
    _recover_aggregate(plan, root)
    for task in plan.tasks:
        for number in range(task.row.rounds):
            paths = _paths(task, number, root)
            for stage, path in paths.items():
                if any(not paths[each].is_file() for each in later(stage)):
                    recover_entries(root, stage, path)
    tracked = STAGES["track"].output_path(root, plan.aggregate)
    if tracked.is_file():
        _recover_tracked(tracked, root)
    else:
        for task in plan.tasks:
            for number in range(task.row.rounds):
                _require_folders(root, _paths(task, number, root)["compile"])
    _forget_what_follows(plan, root)


def _forget_what_follows(plan: Plan, root: Path) -> None:
    """What was made from a file that is gone goes, too: Snakemake looks at its targets first, and is content.

    The store still holds what these outputs name, so they cost no work.
    """
    whole = True
    for task in plan.tasks:
        chain = [path for number in range(task.row.rounds) for path in _paths(task, number, root).values()]
        whole &= _cut(chain)
    last = _final(plan, root)
    if not whole:
        discard(last[0])
    _cut(last)


def _paths(task: PlannedTask, number: int, root: Path) -> dict[str, Path]:
    """The outputs of a round of a task, by stage."""
    return {stage.name: stage.output_path(root, getattr(task.row, stage.name), number) for stage in rounds()}


def _final(plan: Plan, root: Path) -> list[Path]:
    """The outputs that there are once in a plan, in order."""
    return [stage.output_path(root, plan.aggregate) for stage in final() if stage.file]


def _cut(chain: list[Path]) -> bool:
    """Remove what comes after the first file that is missing; whether none is."""
    whole = True
    for path in chain:
        if whole:
            whole = path.is_file()
        elif path.is_file():
            discard(path)
    return whole


def recover_entries(root: Path, stage: str, output: Path) -> int:
    """Remove an output whose entries are missing or damaged, and those; how many there were."""
    try:
        records = read_round(stage, output).records if output.is_file() else ()
    except StoreError:
        kind = STAGES[stage].output
        remove(output, f"cannot be read as {kind.__name__ if kind else stage}")
        return 0
    bad = 0
    for record in records:
        if not is_kept(record):
            continue
        folder = entry_path(root, stage, record.entry)
        bad += not folder.is_dir() or remove_damaged(root, stage, record.entry)
    if bad:
        discard(output)
    return bad


def is_kept(record: object) -> bool:
    """Whether there is a store entry for it: what was not tried has none."""
    result = getattr(record, "result", None)
    return not (isinstance(result, Failure) and result.outcome in NOT_STORED)


def remove(path: Path, why: str) -> None:
    """Take it away, and say so."""
    print(f"{path}: damaged ({why}), made again", file=sys.stderr)
    discard(path)


def _outputs(plan: Plan, root: Path) -> Iterator[Path]:
    seen: set[Path] = set()
    for task in plan.tasks:
        for number in range(task.row.rounds):
            for path in _paths(task, number, root).values():
                if path not in seen:
                    seen.add(path)
                    yield path
    for mutation in plan.mutations:
        yield STAGES["mutate"].output_path(root, mutation.key)
    yield from _final(plan, root)


def _recover_aggregate(plan: Plan, root: Path) -> None:
    """The tables next to the summary, which are read with it."""
    summary = STAGES["aggregate"].output_path(root, plan.aggregate)
    if summary.is_file() and (summary.parent / SEAL).is_file() and (found := damage(summary.parent)):
        remove(summary, f"next to it: {found}")


def _recover_tracked(tracked: Path, root: Path) -> None:
    """What says that runs were logged, where the database that held them is gone."""
    try:
        result = read_record(tracked, TrackOutput).result
    except StoreError:
        remove(tracked, "cannot be read as TrackOutput")
        return
    if isinstance(result, Tracked) and not holds(result.uri, root):
        remove(tracked, "the database that it speaks of is gone or damaged")


def _require_folders(root: Path, output: Path) -> None:
    """What tracking copies must be there."""
    if not output.is_file():
        return
    records = read_record(output, _Named).records
    # Every variant of the plan: with paths as objects this takes three times as long.
    names = (os.path.join(root, entry_name("compile", record.entry)) for record in records)  # noqa: PTH118
    if not all(map(os.path.isdir, names)):
        remove(output, "an entry that it names is missing")


def _folders(root: Path) -> Iterator[Path]:
    """All folders in which something is made under a temporary name."""
    yield root
    for top in ("plan", "cache", *STAGES):
        yield from _with_subfolders(root / top, depth=2 if top in ("plan", "cache") else 1)
    yield from _with_subfolders(root / "store", depth=2)


def _with_subfolders(folder: Path, *, depth: int) -> Iterator[Path]:
    yield folder
    if depth and folder.is_dir():
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        for name in names:
            if not name.startswith((".", SCRATCH)):
                yield from _with_subfolders(folder / name, depth=depth - 1)


def check_store(root: Path) -> tuple[int, int]:
    """How many entries there are, and how many things were damaged or missing."""
    bad = entries = 0
    for folder in sorted((root / "store").glob("*/*/*")):
        if folder.is_dir() and not folder.name.startswith("."):
            entries += 1
            bad += remove_damaged(root, folder.parent.parent.name, folder.name)
    for stage in rounds():
        for path in sorted((root / stage.name).glob("*/round*.json")):
            if is_damaged(path):
                remove(path, "not what was written")
                bad += 1
            else:
                bad += recover_entries(root, stage.name, path)
    return entries, bad
