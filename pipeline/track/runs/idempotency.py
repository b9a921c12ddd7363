"""Logs runs so that the same result ingested twice is one run, and a changed one replaces its predecessor.

A run carries two digests as tags: its slot (what was measured) and its result (what was found). A slot has at
most one active run. The one that it replaces is kept, tagged `superseded_by`, but deleted in MLflow's sense:
out of every view by default, found under "State: Deleted", reachable by its address and through `supersedes`.

Whoever logs holds the store's lock (`client.exclusive`), so what was found stays true until it is written.
"""

import concurrent.futures
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from pipeline.records.record import Record
from pipeline.records.results.tracked import TrackedCounts
from pipeline.track.runs.run_writing import (
    RESULT,
    SLOT,
    SUPERSEDED,
    TASK_NAME,
    WINNER,
    Known,
    KnownRun,
    RunContext,
    local_folder,
    tag_run,
    write_run,
)
from pipeline.track.runs.task_outline import RunOutline, lines_of
from pipeline.track.runs.variant_run import VariantRun
from pipeline.track.stores import mlflow_database
from pipeline.track.stores.mlflow_store import MlflowStore, is_server

if TYPE_CHECKING:
    from mlflow.entities import Run as MlflowRun

PAGE = 1000
AT_ONCE = 8

Kind = Literal["new", "same", "replaced"]


class LoggedRuns(Record, frozen=True, kw_only=True):
    """Where a task's runs are."""

    runs: dict[str, str]
    """Slot -> run id."""
    counts: TrackedCounts


class IngestLedger:
    """What one ingestion did so far, over all its attempts."""

    def __init__(self) -> None:
        self.check: Callable[[], None] = lambda: None
        """Raises where the right to log was lost."""
        self._kinds: dict[str, Kind] = {}

    def __len__(self) -> int:
        return len(self._kinds)

    def enter(self, slot: str, kind: Kind) -> Kind:
        """How the run came to be: what an earlier attempt wrote is `same` to a later one, but new."""
        return self._kinds.setdefault(slot, kind)


class WantedRuns(Record, frozen=True, kw_only=True):
    """The runs that a task should have."""

    lines: tuple[RunOutline, ...]
    make: Callable[[], Sequence[VariantRun]]
    """The whole runs; called where one of them is not there."""
    known: Known | None = None
    """What the experiment holds of the task; None where it was not asked yet."""


def log_runs(
    store: MlflowStore, runs: Sequence[VariantRun], place: RunContext, ledger: IngestLedger | None = None
) -> LoggedRuns:
    """Log what is not there yet; one search, not one a run."""
    wanted = WantedRuns(lines=lines_of(runs), make=lambda: runs)
    return log_wanted(store, wanted, place, IngestLedger() if ledger is None else ledger)


def log_wanted(store: MlflowStore, wanted: WantedRuns, place: RunContext, ledger: IngestLedger) -> LoggedRuns:
    """The same, without laying out runs of which all are there."""
    if not wanted.lines:
        return LoggedRuns(runs={}, counts=TrackedCounts())
    ledger.check()
    known = _known_runs(store, place) if wanted.known is None else wanted.known
    missing = [line for line in wanted.lines if _same(line, known.get(line.slot, [])) is None]
    whole = {run.slot: run for run in wanted.make()} if missing else {}
    found: dict[str, str] = {}

    def log(line: RunOutline) -> tuple[str, Kind]:
        slot, before = line.slot, known.get(line.slot, [])
        same = _same(line, before)
        if same is not None:
            _bring_back(store, same, place)
            written = same.id
        else:
            written = found.get(slot) or _write(store, whole[slot], before, place)
        return written, ledger.enter(slot, _replace(store, written, before, "same" if same else "new"))

    if is_server(store.uri):
        done = _each(log, wanted.lines)
    else:
        fresh = [whole[line.slot] for line in missing]
        found |= _write_together(store, fresh, known, place) if _can_insert(store, place) else {}
        done = [log(line) for line in wanted.lines]
    kinds = [kind for _, kind in done]
    if kinds.count("same") < len(kinds):
        _clear_away(store, place)
    counts = TrackedCounts(new=kinds.count("new"), same=kinds.count("same"), replaced=kinds.count("replaced"))
    logged = {line.slot: identity for line, (identity, _) in zip(wanted.lines, done, strict=True)}
    return LoggedRuns(runs=logged, counts=counts)


def _can_insert(store: MlflowStore, place: RunContext) -> bool:
    """Whether runs can be written together: their artifacts come first, so they must be files here."""
    location = store.client.get_experiment(place.experiment).artifact_location
    return local_folder(location) is not None and mlflow_database.is_supported(store)


def add_up(parts: Sequence[TrackedCounts]) -> TrackedCounts:
    """The sum of several tasks' counts."""
    return TrackedCounts(
        new=sum(part.new for part in parts),
        same=sum(part.same for part in parts),
        replaced=sum(part.replaced for part in parts),
    )


def _known_runs(store: MlflowStore, place: RunContext) -> Known:
    known: Known = {}
    for run in _pages(store, place.experiment, f"tags.{TASK_NAME} = '{place.task_name}'"):
        tags = dict(run.data.tags)
        if SLOT in tags:
            entry = KnownRun(
                id=run.info.run_id,
                result=tags.get(RESULT, ""),
                active=run.info.lifecycle_stage == "active",
                finished=run.info.status == "FINISHED",
                tags=tags,
            )
            known.setdefault(tags[SLOT], []).append(entry)
    return known


def _pages(store: MlflowStore, experiment: str, query: str) -> Iterator["MlflowRun"]:
    from mlflow.entities import ViewType

    token = None
    while True:
        page = store.client.search_runs(
            [experiment], query, run_view_type=ViewType.ALL, max_results=PAGE, page_token=token
        )
        yield from page
        token = page.token
        if not token:
            return


def _write_together(
    store: MlflowStore, fresh: Sequence[VariantRun], known: Known, place: RunContext
) -> dict[str, str]:
    """Slot -> id, many in one transaction."""
    ids: dict[str, str] = {}
    for start in range(0, len(fresh), mlflow_database.AT_ONCE):
        some = fresh[start : start + mlflow_database.AT_ONCE]
        new = [_new(run, known.get(run.slot, []), place) for run in some]
        ids |= mlflow_database.write_runs(store, new, place)
    return ids


def _new(run: VariantRun, before: Sequence[KnownRun], place: RunContext) -> mlflow_database.NewRun:
    taken = frozenset(other.id for other in before)
    return mlflow_database.NewRun(run=run, tags=_tags(run, before, place), taken=taken)


def _each(
    log: Callable[[RunOutline], tuple[str, Kind]], lines: Sequence[RunOutline]
) -> list[tuple[str, Kind]]:
    """Several at once: a server is waited for, a database is worked with."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(log, lines))


def _clear_away(store: MlflowStore, place: RunContext) -> None:
    """Retire runs that will not be finished: of a writer that was killed, or a call that was sent twice."""
    query = f"tags.{TASK_NAME} = '{place.task_name}' AND attributes.status != 'FINISHED'"
    for run in store.client.search_runs([place.experiment], query, max_results=PAGE):
        if SLOT in run.data.tags:
            store.client.delete_run(run.info.run_id)


def _same(line: RunOutline, before: Sequence[KnownRun]) -> KnownRun | None:
    """The run that holds this result already."""
    return next((other for other in before if other.finished and other.result == line.result), None)


def _write(store: MlflowStore, run: VariantRun, before: Sequence[KnownRun], place: RunContext) -> str:
    return write_run(store, run, _tags(run, before, place), place)


def _replace(store: MlflowStore, identity: str, before: Sequence[KnownRun], kind: Kind) -> Kind:
    """Retire the others of its slot; how the run came to be."""
    others = [other for other in before if other.active and other.id != identity]
    for other in others:
        _retire(store, other, by=identity)
    return "replaced" if any(other.finished for other in others) else kind


def _tags(run: VariantRun, before: Sequence[KnownRun], place: RunContext) -> dict[str, str]:
    tags = {SLOT: run.slot, RESULT: run.result, TASK_NAME: place.task_name}
    tags |= {} if place.sweep is None else {"sweep": place.sweep}
    tags |= run.tags | place.tags
    replaced = [other.id for other in before if other.active and other.finished]
    if replaced:
        tags["supersedes"] = " ".join(replaced)
    return tags


def _bring_back(store: MlflowStore, run: KnownRun, place: RunContext) -> None:
    """A known run whose result holds now: active, and of the task that has it now."""
    if not run.active:
        store.client.restore_run(run.id)
        # Whether it wins again is found out after all runs are there.
        for key in run.tags.keys() & {SUPERSEDED, WINNER}:
            store.client.delete_tag(run.id, key)
    changed = {key: value for key, value in place.tags.items() if run.tags.get(key) != value}
    if changed:
        tag_run(store, run.id, changed)


def _retire(store: MlflowStore, run: KnownRun, *, by: str) -> None:
    tag_run(store, run.id, {SUPERSEDED: by})
    store.client.delete_run(run.id)
