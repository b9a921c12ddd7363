"""The pages that answer a user's questions: logged tasks in, prepared chart pages and links to them out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pipeline.records.record import Record, digest
from pipeline.records.results.tracked import TaskLinks
from pipeline.track.charts import shared_views, ui_links
from pipeline.track.charts.explaining_axes import Order, TaskAxes, explain, goal, read_order
from pipeline.track.runs import mlflow_names
from pipeline.track.runs.idempotency import LoggedRuns
from pipeline.track.runs.sweep_run import BEST, SweepRun, curves_of
from pipeline.track.runs.task_outline import RunOutline
from pipeline.track.runs.task_specs import TrackedTask
from pipeline.track.stores.mlflow_store import MlflowStore, set_experiment_tags


class TaskRuns(Record, frozen=True, kw_only=True):
    """One task's runs in one experiment."""

    task: TrackedTask
    lines: tuple[RunOutline, ...]
    axes: TaskAxes


Placed = tuple[TaskRuns, LoggedRuns]


def winners(store: MlflowStore, experiment: str, batches: Sequence[TaskRuns]) -> str:
    """Which kernel wins how much, over all tasks."""
    target = goal(batch.axes for batch in batches)
    return _share(store, experiment, {"winners": shared_views.winners_page(target)})["winners"]


def compiled(store: MlflowStore, experiment: str, batches: Sequence[TaskRuns]) -> str | None:
    """What the compiler made of the default variants on each target."""
    if not any(batch.lines for batch in batches):
        return None
    return _share(store, experiment, {"targets": shared_views.compiled_page()}, mode="TABLE")["targets"]


def searches(store: MlflowStore, sweep: SweepRun) -> str | None:
    """How the best so far fell, round by round; None where no search has two rounds."""
    curves: dict[str, dict[str, None]] = {}
    for curve in curves_of(sweep.folder):
        if curve.quantity == BEST:
            curves.setdefault(curve.title, {})[mlflow_names.key(curve.name)] = None
    if not curves:
        return None
    page = shared_views.rounds_page(sweep.identity, {title: tuple(each) for title, each in curves.items()})
    name = f"rounds of {sweep.summary.experiment}"
    return _share(store, sweep.experiment, {name: page})[name]


def tasks(
    store: MlflowStore, experiment: str, placed: Sequence[Placed], aggregate: Path
) -> tuple[TaskLinks, ...]:
    """Which tunables matter, task by task."""
    order = read_order(aggregate)
    filled = [entry for entry in placed if entry[0].lines]
    charts = _share(store, experiment, {batch.task.name: _page(batch, order) for batch, _ in filled})
    return tuple(_links(store, experiment, entry, charts[entry[0].task.name]) for entry in filled)


def _page(batch: TaskRuns, order: Order) -> shared_views.ChartPage:
    row = batch.task.row
    return shared_views.task_page(row.task, goal([batch.axes]), explain(batch.axes, row, order))


def _links(store: MlflowStore, experiment: str, placed: Placed, charts: str) -> TaskLinks:
    batch, logged = placed
    fastest_first = sorted(batch.lines, key=lambda line: line.median or 0.0)
    runs = [logged.runs[line.slot] for line in fastest_first]
    address, count = ui_links.compare(ui_links.base(store.uri), experiment, runs)
    return TaskLinks(
        task=batch.task.row.task,
        title=batch.task.title,
        runs=len(runs),
        charts=charts,
        compare=address if batch.axes.differ else None,
        compared=count if batch.axes.differ else 0,
        differ=batch.axes.differ,
    )


def _share(
    store: MlflowStore,
    experiment: str,
    pages: Mapping[str, shared_views.ChartPage],
    mode: Literal["CHART", "TABLE"] = "CHART",
) -> dict[str, str]:
    """Keep the layouts of pages under keys that stay the same; name of the page -> link to it."""
    keys = {name: digest(name) for name in pages}
    tags = {f"{shared_views.PREFIX}{keys[name]}": shared_views.state(page) for name, page in pages.items()}
    set_experiment_tags(store, experiment, tags)
    base = ui_links.base(store.uri)
    return {name: ui_links.runs(base, experiment, view=key, mode=mode) for name, key in keys.items()}
