"""Logs a whole experiment: its results and tables in, runs, sweep, models and links out."""

import gc
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import Record, digest, to_json
from pipeline.records.results.aggregated import Summary, Winner
from pipeline.records.results.collection import Result
from pipeline.records.results.tracked import ChampionModel, TrackedCounts, TrackingLinks
from pipeline.track import chart_pages, mlflow_ui, registered_models
from pipeline.track.chart_pages import Placed, TaskRuns
from pipeline.track.experiment_notes import ABOUT, COMPILED, MEASURED, SWEEPS, write_notes
from pipeline.track.runs.idempotency import IngestLedger, LoggedRuns, WantedRuns, add_up, log_wanted
from pipeline.track.runs.run_writing import Known, RunContext, workload_dataset
from pipeline.track.runs.sweep_run import SweepRun, close_sweep, open_sweep, what_varies
from pipeline.track.runs.task_outline import outlines_of, runs_of
from pipeline.track.runs.variant_run import is_measured, is_only_compiled, read_task
from pipeline.track.stores.mlflow_database import known_runs
from pipeline.track.stores.mlflow_store import MlflowStore, experiment_id

LOCAL = "local"  # hardware that is read from the machine (pipeline/plan/local_machine.py)
KIND = {"mlflow.experimentKind": "custom_model_development"}
WANTED = {MEASURED: is_measured, COMPILED: is_only_compiled}


class IngestSource(Record, frozen=True, kw_only=True):
    """What is ingested."""

    spec: AggregateSpec
    summary: Summary
    aggregate: Path
    """Folder of the tables."""
    root: Path


class Ingested(Record, frozen=True, kw_only=True):
    """What came of it."""

    experiments: dict[str, str]
    sweep: str
    measured: TrackedCounts
    compiled: TrackedCounts
    champions: tuple[ChampionModel, ...]
    links: TrackingLinks


def ingest(
    store: MlflowStore, source: IngestSource, report: Path | None, ledger: IngestLedger | None = None
) -> Ingested:
    """Log what is new, and point everything at it; begun again after an error, it goes on."""
    ledger = IngestLedger() if ledger is None else ledger
    # What MLflow has imported would otherwise be looked through again every few runs.
    gc.collect()
    gc.freeze()
    name = source.spec.tracking.experiment
    experiments = {suffix: experiment_id(store, f"{name}{suffix}", KIND) for suffix in ABOUT}
    write_notes(store, experiments, None)
    tasks = [read_task(row, source.root) for row in source.spec.tasks]
    outlines = outlines_of(source.spec, tasks, source.root)
    pairs = list(zip(tasks, outlines, strict=True))
    measured = [TaskRuns(task=task, lines=outline.measured, axes=outline.axes) for task, outline in pairs]
    compiled = [TaskRuns(task=task, lines=outline.compiled, axes=outline.axes) for task, outline in pairs]
    sweep = _sweep(source, experiments[SWEEPS], [*measured, *compiled])
    sweep_run = open_sweep(store, sweep)

    def log(batches: Sequence[TaskRuns], suffix: str) -> list[LoggedRuns]:
        names = [batch.task.name for batch in batches if batch.lines]
        known = known_runs(store, experiments[suffix], names) or {}
        done = []
        for batch in batches:
            # Taken out: what one task logs is news to another one of the same names.
            wanted = _wanted(batch, source, WANTED[suffix], known.pop(batch.task.name, None))
            place = _place(batch, experiments[suffix], sweep_run)
            done.append(log_wanted(store, wanted, place, ledger))
        return done

    placed = list(zip(measured, log(measured, MEASURED), strict=True))
    others = log(compiled, COMPILED)
    ledger.check()
    champions = registered_models.register(store, _found(source.summary, placed))
    found = TrackingLinks(
        charts=chart_pages.winners(store, experiments[MEASURED], measured) if champions else None,
        compiled=chart_pages.compiled(store, experiments[COMPILED], compiled),
        sweep=mlflow_ui.run(mlflow_ui.base(store.uri), experiments[SWEEPS], sweep_run),
        models=mlflow_ui.models(mlflow_ui.base(store.uri)),
        searches=chart_pages.searches(store, sweep),
        runs=chart_pages.runs(store, experiments[MEASURED], measured),
        sweeps=chart_pages.sweeps(store, experiments[SWEEPS]),
        tasks=chart_pages.tasks(store, experiments[MEASURED], placed, source.aggregate),
    )
    write_notes(store, experiments, found)
    close_sweep(store, sweep_run, msgspec.structs.replace(sweep, links=found), report)
    return Ingested(
        experiments={f"{name}{suffix}": identity for suffix, identity in experiments.items()},
        sweep=sweep_run,
        measured=add_up([logged.counts for _, logged in placed]),
        compiled=add_up([logged.counts for logged in others]),
        champions=champions,
        links=found,
    )


def _wanted(
    batch: TaskRuns, source: IngestSource, which: Callable[[Result], bool], known: Known | None
) -> WantedRuns:
    return WantedRuns(
        lines=batch.lines, make=lambda: runs_of(source.spec, batch.task, source.root, which), known=known
    )


def _sweep(source: IngestSource, experiment: str, batches: Sequence[TaskRuns]) -> SweepRun:
    found = [(line.slot, line.result) for batch in batches for line in batch.lines]
    return SweepRun(
        identity=digest([source.spec.experiment, found, source.summary.stages]),
        experiment=experiment,
        varies=what_varies(source.spec.tasks),
        summary=source.summary,
        spec=to_json(source.spec),
        folder=source.aggregate,
        root=source.root,
    )


def _place(batch: TaskRuns, experiment: str, sweep: str) -> RunContext:
    return RunContext(
        experiment=experiment,
        task_name=batch.task.name,
        tags={"task": batch.task.row.task},
        sweep=sweep,
        dataset=workload_dataset(batch.task) if any(line.median for line in batch.lines) else None,
        task_document=to_json(batch.task),
    )


def _found(summary: Summary, placed: Sequence[Placed]) -> list[registered_models.WinningRun]:
    """The winners that were measured, with their runs."""
    runs = {
        (batch.task.row.task, line.variant): logged.runs[line.slot]
        for batch, logged in placed
        for line in batch.lines
    }
    winners = [winner for winner in summary.winners if isinstance(winner, Winner)]
    keys = [(winner.task, winner.variant) for winner in winners]
    pairs = zip(winners, keys, strict=True)
    return [
        registered_models.WinningRun(winner=winner, run=runs[key], target=_elsewhere(winner, summary))
        for winner, key in pairs
        if key in runs
    ]


def _elsewhere(winner: Winner, summary: Summary) -> str | None:
    """`cpu` and `local` are whatever machine measures: a result of another one must not take their names."""
    name = winner.cell.hardware
    target = next(target for target in summary.targets if target.hardware == name)
    if summary.origin is None or (not executes_on_host(target.kind) and name != LOCAL):
        return None
    return f"{name}-{target.device.get('name', summary.origin.device)}"
