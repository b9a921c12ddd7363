"""The pages that answer a user's questions: logged tasks in, prepared chart pages and links to them out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pipeline.analyze.collect import Result
from pipeline.records.record import Record, digest
from pipeline.records.tracked import TaskLinks
from pipeline.track import links, views
from pipeline.track.client import Store, set_experiment_tag
from pipeline.track.explain import Order, explain, goal, read_order
from pipeline.track.idempotency import Logged
from pipeline.track.runs import Run
from pipeline.track.tasks import Task


class Batch(Record, frozen=True, kw_only=True):
    """One task's runs in one experiment."""

    task: Task
    results: tuple[Result, ...]
    runs: tuple[Run, ...]


Placed = tuple[Batch, Logged]


def winners(store: Store, experiment: str, batches: Sequence[Batch]) -> str:
    """Which kernel wins how much, over all tasks."""
    target = goal([result for batch in batches for result in batch.results])
    return _share(store, experiment, "winners", views.winners_page(target))


def compiled(store: Store, experiment: str, batches: Sequence[Batch]) -> str | None:
    """What the compiler made of the default variants on each target."""
    if not any(batch.runs for batch in batches):
        return None
    return _share(store, experiment, "targets", views.compiled_page(), mode="TABLE")


def tasks(store: Store, experiment: str, placed: Sequence[Placed], aggregate: Path) -> tuple[TaskLinks, ...]:
    """Which tunables matter, task by task."""
    order = read_order(aggregate)
    return tuple(_task(store, experiment, entry, order) for entry in placed if entry[0].runs)


def _task(store: Store, experiment: str, placed: Placed, order: Order) -> TaskLinks:
    batch, logged = placed
    task, target = batch.task, goal(batch.results)
    page = views.task_page(task.row.task, target, explain(batch.results, batch.runs, order))
    fastest_first = sorted(batch.runs, key=lambda run: run.metrics["time/median_us"])
    runs = [logged.runs[run.slot] for run in fastest_first]
    address, count = links.compare(links.base(store.uri), experiment, runs)
    return TaskLinks(
        task=task.row.task,
        title=task.title,
        runs=len(runs),
        charts=_share(store, experiment, task.name, page),
        compare=address,
        compared=count,
    )


def _share(
    store: Store, experiment: str, name: str, page: views.Page, mode: Literal["CHART", "TABLE"] = "CHART"
) -> str:
    """Keep the page's layout under a key that stays the same, and link to it."""
    key = digest(name)
    set_experiment_tag(store, experiment, f"{views.PREFIX}{key}", views.state(page))
    return links.runs(links.base(store.uri), experiment, view=key, mode=mode)
