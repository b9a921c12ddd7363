"""Tracked runs for the terminal: filters in, runs and their differences out, through MLflow's client."""

import contextlib
import datetime
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pipeline.performance.metrics import shown_metrics
from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.errors import ConfigError, TrackingError, hint, suggestion
from pipeline.records.record import Record
from pipeline.store.atomic import is_writable
from pipeline.store.temporary import scratch_folder
from pipeline.track import mlflow_ui
from pipeline.track.runs.task_outline import MEDIAN
from pipeline.track.stores.mlflow_store import (
    EMBEDDED,
    MlflowStore,
    database,
    is_server,
    open_store,
    understandable,
)

if TYPE_CHECKING:
    from mlflow.entities import Run

PAGE = 500
SHORT_ID = 8
SYSTEM = "mlflow."
"""How tags begin that MLflow keeps for itself."""
INTERNAL = ("kernelmill.", "seeds")
"""How tags begin that say nothing to a reader."""
IDENTITY = re.compile(r"(store/\S+/)?[0-9a-f]{16,}")
"""A digest or an id, or a folder that is named by one."""


class TrackedRun(Record, frozen=True, kw_only=True):
    """One run of MLflow: a measured or compiled variant, or a sweep."""

    id: str
    name: str
    experiment: str
    started: str
    """UTC, ISO 8601, seconds."""
    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]
    address: str
    """Its page in MLflow's UI."""

    @property
    def facts(self) -> dict[str, str]:
        """All that is known of it, by name."""
        metrics = {name: f"{value:.6g}" for name, value in self.metrics.items()}
        return {**metrics, **self.params, **self.tags}


class Difference(Record, frozen=True, kw_only=True):
    """What two runs do not have alike; None where one does not have it."""

    name: str
    first: str | None
    second: str | None
    ratio: float | None
    """Of two numbers: the second over the first."""
    intervals: Literal["overlap", "apart"] | None = None
    """How the two intervals of the numbers lie; None for what has no interval."""


def find_runs(root: Path, filters: Sequence[str], *, limit: int) -> list[TrackedRun]:
    """The latest runs that match every filter: `key=value` of a tag or parameter, or a part of the name.

    Raises
    ------
    TrackingError
        Nothing was tracked yet, or MLflow cannot be reached.
    ConfigError
        A filter that no run matches by itself.
    """
    found: list[TrackedRun] = []
    passed_over: list[TrackedRun] = []
    for run in _all_runs(root):
        if all(_matches(run, each) for each in filters):
            found.append(run)
            if len(found) == limit:
                break
        elif not found:
            passed_over.append(run)
    if not found and passed_over:
        _check_filters(filters, passed_over)
    return found


def _check_filters(filters: Sequence[str], runs: Sequence[TrackedRun]) -> None:
    for wanted in filters:
        if any(_matches(run, wanted) for run in runs):
            continue
        key, separator, value = wanted.partition("=")
        if not separator:
            raise ConfigError(f"{wanted}: no run's name has these words")
        values = {run.facts[key] for run in runs if key in run.facts}
        if not values:
            known = sorted({name for run in runs for name in (*run.params, *run.tags)})
            raise ConfigError(f"{wanted}: no run has a parameter or tag '{key}'{suggestion(key, known)}")
        raise ConfigError(f"{wanted}: no run has this {key}{hint(value, sorted(values))}")


def one_run(root: Path, identifier: str) -> TrackedRun:
    """The run whose id begins so.

    Raises
    ------
    ConfigError
        None does, or several do.
    """
    found = [run for run in _all_runs(root) if run.id.startswith(identifier)]
    if len(found) != 1:
        many = "no run has" if not found else f"{len(found)} runs begin with"
        raise ConfigError(f"{identifier}: {many} this id (kernelmill runs lists them)")
    return found[0]


def differences(first: TrackedRun, second: TrackedRun) -> list[Difference]:
    """Time and speed-ups that differ, then parameters, tags, other metrics, and last what only identifies.

    Within each, those of the report come first.
    """
    found: list[tuple[int, Difference]] = []
    kinds: tuple[Literal["params", "tags", "metrics"], ...] = ("params", "tags", "metrics")
    for kind in kinds:
        ours: Mapping[str, Any] = getattr(first, kind)
        theirs: Mapping[str, Any] = getattr(second, kind)
        for name in _in_order(ours.keys() | theirs.keys()):
            one, other = ours.get(name), theirs.get(name)
            if one == other:
                continue
            ratio = other / one if kind == "metrics" and one and other is not None else None
            intervals = _intervals(name, first.metrics, second.metrics) if kind == "metrics" else None
            difference = Difference(
                name=name, first=_text(one), second=_text(other), ratio=ratio, intervals=intervals
            )
            found.append((_place(kind, difference), difference))
    return [difference for _, difference in sorted(found, key=lambda each: each[0])]


def _place(kind: Literal["params", "tags", "metrics"], difference: Difference) -> int:
    """Of its group; sorting keeps the order within one."""
    if kind == "metrics":
        is_result = difference.name in (MEDIAN, *_ends(MEDIAN)) or difference.name.startswith("speedup/")
        return 0 if is_result else 3
    values = (difference.first, difference.second)
    if difference.name.startswith(INTERNAL) or any(value and IDENTITY.fullmatch(value) for value in values):
        return 4
    return 1 if kind == "params" else 2


def _intervals(
    name: str, ours: Mapping[str, float], theirs: Mapping[str, float]
) -> Literal["overlap", "apart"] | None:
    low, high = _ends(name)
    if any(end not in metrics for end in (low, high) for metrics in (ours, theirs)):
        return None
    return "overlap" if ours[low] <= theirs[high] and theirs[low] <= ours[high] else "apart"


def _ends(name: str) -> tuple[str, str]:
    """The metrics with the ends of a metric's interval, if it has one."""
    return ("time/low_us", "time/high_us") if name == MEDIAN else (f"{name}_low", f"{name}_high")


def _in_order(names: Collection[str]) -> list[str]:
    """As the columns of the report's table of variants, the others by name; an interval follows its value."""
    baselines = sorted(name.removeprefix("speedup/") for name in names if name.startswith("speedup/"))
    shown = [metric.mlflow_name for metric, _ in shown_metrics(baselines)]
    places = {name: place for place, name in enumerate(shown)}
    listed = sorted(names, key=lambda name: (places.get(name, len(places)), name))
    ends = {end for name in listed for end in _ends(name)}
    with_ends = [(name, *_ends(name)) for name in listed if name not in ends]
    return [name for several in with_ends for name in several if name in names]


def metric_of(runs: Sequence[TrackedRun], wanted: str) -> None:
    """See that at least one of the runs has a metric.

    Raises
    ------
    ConfigError
        None has.
    """
    known = sorted({name for run in runs for name in run.metrics})
    if runs and wanted not in known:
        raise ConfigError(f"--metric {wanted}: no such metric{hint(wanted, known)}")


def _text(value: object) -> str | None:
    if value is None:
        return None
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _matches(run: TrackedRun, wanted: str) -> bool:
    key, separator, value = wanted.partition("=")
    if not separator:
        return wanted in run.name or run.id.startswith(wanted)
    return run.facts.get(key) == value


def _all_runs(root: Path) -> Iterator[TrackedRun]:
    """Of all experiments, the latest first."""
    with _store(root) as store, understandable(store.uri):
        ui = mlflow_ui.base(store.uri)
        names = {each.experiment_id: each.name for each in store.client.search_experiments()}
        token: str | None = None
        while True:
            page = store.client.search_runs(
                list(names),
                order_by=["attributes.start_time DESC"],
                max_results=PAGE,
                page_token=token,
            )
            yield from (_tracked(run, names, ui) for run in page)
            token = page.token
            if not token:
                return


@contextlib.contextmanager
def _store(root: Path) -> Iterator[MlflowStore]:
    tracked = mlflow_ui.latest(root)
    if tracked is None and not database(root).is_file():
        raise TrackingError("nothing was tracked yet: kernelmill run does")
    uri = tracked.uri if tracked is not None and is_server(tracked.uri) else EMBEDDED
    settings = Tracking(name="runs", description="", enabled=True, uri=uri, experiment="")
    if is_server(uri) or is_writable(database(root).parent):
        yield open_store(settings, root)
        return
    # SQLite and MLflow write next to a database even to read it.
    with scratch_folder() as copy:
        target = database(copy)
        target.parent.mkdir()
        for name in (target.name, f"{target.name}-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(database(root).with_name(name), target.with_name(name))
        yield open_store(settings, copy)


def _tracked(run: "Run", names: Mapping[str, str], ui: str) -> TrackedRun:
    started = datetime.datetime.fromtimestamp(run.info.start_time / 1000, datetime.UTC)
    return TrackedRun(
        id=run.info.run_id,
        name=run.info.run_name or "",
        experiment=names.get(run.info.experiment_id, run.info.experiment_id),
        started=started.isoformat(timespec="seconds"),
        params=dict(run.data.params),
        metrics=dict(run.data.metrics),
        tags={name: value for name, value in run.data.tags.items() if not name.startswith(SYSTEM)},
        address=mlflow_ui.run(ui, run.info.experiment_id, run.info.run_id),
    )
