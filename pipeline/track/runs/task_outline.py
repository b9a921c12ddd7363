"""What tracking must know of a task whose runs may be logged already: outputs of its stages in, Outline out.

An outline is kept in the store, `store/track/…`, under a name that is derived from the content of every file
that it is made from and from the code that makes it. So what did not change is not laid out again.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from pipeline.performance.metrics import signature
from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import Record, digest, digest_bytes
from pipeline.records.results.collection import Result, collect, read_files
from pipeline.store.local_cache import find_kept, keep
from pipeline.track.runs.variant_run import TrackedTask, VariantRun, is_measured, is_only_compiled, run_of

FACTS = ("static/registers", "static/spills", "static/code_bytes")
AUTHORS = ("written_by", "agent/change")


class TaskAxes(Record, frozen=True, kw_only=True):
    """What varies among a task's measured variants."""

    baseline: str | None
    """The first one that the first of them was compared with."""
    values: dict[str, dict[str, tuple[str, ...]]]
    """Implementation -> tunable -> its values."""
    numeric: tuple[str, ...]
    """Tunables that are metrics, too."""
    facts: tuple[str, ...]
    recorded: bool = False
    """Whether recorded measurements were replayed."""
    in_rounds: bool = False
    """Whether a search proposed them in more than one round."""
    authors: tuple[str, ...] = ()
    """Tags that tell who wrote a source, and for what change, where one of them has such."""

    @property
    def tunables(self) -> dict[str, tuple[str, ...]]:
        """Implementation -> those that vary."""
        return {
            implementation: tuple(name for name, values in tunables.items() if len(values) > 1)
            for implementation, tunables in self.values.items()
        }

    @property
    def differ(self) -> bool:
        """Whether any tunable has two values among them."""
        return any(self.tunables.values())


def axes_of(results: Sequence[Result], runs: Sequence[VariantRun]) -> TaskAxes:
    """What varies among the measured variants of a task."""
    metrics = dict.fromkeys(name for run in runs for name in run.metrics)
    facts = {name: {run.metrics.get(name) for run in runs} - {None} for name in FACTS}
    compared = [entry for result in results if result.profiled for entry in result.profiled.comparisons]
    return TaskAxes(
        baseline=compared[0].baseline if compared else None,
        values=_values(results),
        numeric=tuple(name.removeprefix("tunable/") for name in metrics if name.startswith("tunable/")),
        facts=tuple(name for name, found in facts.items() if len(found) > 1),
        recorded=any(result.profiled and result.profiled.recorded for result in results),
        in_rounds=len({result.round for result in results}) > 1,
        authors=tuple(name for name in AUTHORS if any(name in run.tags for run in runs)),
    )


def joined(axes: Sequence[TaskAxes]) -> TaskAxes:
    """What varies among the variants of several tasks of one kernel."""
    values: dict[str, dict[str, dict[str, None]]] = {}
    for each in axes:
        for implementation, tunables in each.values.items():
            for name, found in tunables.items():
                values.setdefault(implementation, {}).setdefault(name, {}).update(dict.fromkeys(found))
    return TaskAxes(
        baseline=next((each.baseline for each in axes if each.baseline), None),
        values={
            implementation: {name: tuple(found) for name, found in tunables.items()}
            for implementation, tunables in values.items()
        },
        numeric=_union(each.numeric for each in axes),
        facts=_union(each.facts for each in axes),
        recorded=any(each.recorded for each in axes),
        in_rounds=any(each.in_rounds for each in axes),
        authors=_union(each.authors for each in axes),
    )


def _union(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for several in names for name in several))


def _values(results: Iterable[Result]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Implementation -> tunable -> its values."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for result in results:
        tunables = found.setdefault(result.variant.implementation, {})
        for name, value in result.variant.tunables.items():
            tunables.setdefault(name, {})[str(value)] = None
    return {
        implementation: {name: tuple(values) for name, values in tunables.items()}
        for implementation, tunables in found.items()
    }


STAGE = "track"
MEDIAN = "time/median_us"


class RunOutline(Record, frozen=True, kw_only=True):
    """The parts of a run that show whether it is logged."""

    slot: str
    result: str
    variant: str
    median: float | None
    """Microseconds; None where nothing was measured."""


class TaskOutline(Record, frozen=True, kw_only=True):
    """The runs of one task."""

    key: str
    measured: tuple[RunOutline, ...]
    compiled: tuple[RunOutline, ...]
    axes: TaskAxes


def outlines_of(spec: AggregateSpec, tasks: Sequence[TrackedTask], root: Path) -> list[TaskOutline]:
    """Each task's: from the store, or made and put there.

    Raises
    ------
    StoreError
        An output is missing or cannot be read, or there is no space.
    """
    with ThreadPoolExecutor() as pool:
        keys = list(pool.map(lambda task: _key(spec, task, root), tasks))
    pairs = zip(keys, tasks, strict=True)
    return [find_kept(root, STAGE, key, TaskOutline) or _new(key, spec, task, root) for key, task in pairs]


def runs_of(
    spec: AggregateSpec, task: TrackedTask, root: Path, wanted: Callable[[Result], bool]
) -> list[VariantRun]:
    """The whole runs of a task."""
    return _runs([result for result in _results(spec, task, root) if wanted(result)], task, root)


def _runs(results: Sequence[Result], task: TrackedTask, root: Path) -> list[VariantRun]:
    """The runs of results that appear together, named by the tunables that differ between them or are fixed.

    A sweep over values that are fixed makes a task of each.
    """
    fixed = task.generate.optimization.fixed if task.generate else {}
    differ = {
        implementation: [name for name, values in tunables.items() if len(values) > 1 or name in fixed]
        for implementation, tunables in _values(results).items()
    }
    return [run_of(result, task, root, differ[result.variant.implementation]) for result in results]


def lines_of(runs: Iterable[VariantRun]) -> tuple[RunOutline, ...]:
    """What shows whether they are logged."""
    return tuple(
        RunOutline(slot=run.slot, result=run.result, variant=run.record.id, median=run.metrics.get(MEDIAN))
        for run in runs
    )


def _results(spec: AggregateSpec, task: TrackedTask, root: Path) -> tuple[Result, ...]:
    return collect(msgspec.structs.replace(spec, tasks=(task.row,)), root).results


def _key(spec: AggregateSpec, task: TrackedTask, root: Path) -> str:
    files = {path: digest_bytes(content) for path, content in read_files((task.row,), root).items()}
    for stage in ("verify", "profile"):
        path = spec_path(root, stage, getattr(task.row, stage))
        files[path] = digest_bytes(path.read_bytes()) if path.is_file() else ""
    named = {path.relative_to(root).as_posix(): found for path, found in files.items()}
    return digest([task.row, spec.origin, spec.build, signature(), named])


def _new(key: str, spec: AggregateSpec, task: TrackedTask, root: Path) -> TaskOutline:
    results = _results(spec, task, root)
    measured = [result for result in results if is_measured(result)]
    runs = _runs(measured, task, root)
    compiled = _runs([result for result in results if is_only_compiled(result)], task, root)
    outline = TaskOutline(
        key=key, measured=lines_of(runs), compiled=lines_of(compiled), axes=axes_of(measured, runs)
    )
    keep(root, STAGE, outline, {})
    return outline
