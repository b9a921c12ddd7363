"""track: the results and tables of an experiment -> MLflow: runs, sweep, winners as models, links.

In: an AggregateSpec, the outputs of its tasks and the folder that aggregate wrote. Out: a TrackOutput.

    python -m pipeline.stages.track --spec S.json --aggregate FOLDER --out tracked.json [--root artifacts]

The report links to what was tracked, so it is made afterwards and then joins the sweep's run:

    python -m pipeline.stages.track --attach tracked.json --spec S.json --report report.html
"""

import argparse
import sys
import time
from pathlib import Path

from pipeline.performance.quantities import counted
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import read_record, to_json
from pipeline.records.results.aggregated import Summary, Winner
from pipeline.records.results.tracked import NotTracked, Tracked, TrackedCounts, TrackOutput
from pipeline.report.page import rendering
from pipeline.sandbox import stage_command
from pipeline.store.integrity import write_sealed
from pipeline.track.ingest import Ingested, IngestSource, ingest
from pipeline.track.runs.idempotency import IngestLedger
from pipeline.track.runs.sweep_run import attach_report
from pipeline.track.stores.mlflow_store import MlflowStore, exclusive, open_store, shown_uri, understandable
from pipeline.track.stores.mlflow_store import prepare as prepare_client
from pipeline.track.stores.retries import patiently


def main(arguments: list[str]) -> int:
    """Command line of the stage; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.stages.track", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="AggregateSpec as JSON")
    parser.add_argument("--aggregate", type=Path, help="folder with summary.json and the tables")
    parser.add_argument("--report", type=Path, help="report to keep with the sweep, where it exists already")
    parser.add_argument("--out", type=Path, help="TrackOutput to write")
    parser.add_argument(
        "--attach", type=Path, help="TrackOutput whose sweep gets the report; logs nothing else"
    )
    parser.add_argument("--root", type=Path, default=Path("artifacts"), help="the artifact store")
    options = parser.parse_args(arguments)
    if options.attach is not None:
        if options.report is None:
            parser.error("--attach needs --report")
        return stage_command.run(lambda: attach(options))
    if options.aggregate is None or options.out is None:
        parser.error("--aggregate and --out are needed")
    return stage_command.run(lambda: track(options))


def prepare() -> None:
    """Import what logging and the report after it need, in a process that jobs are forked from."""
    prepare_client()
    rendering.prepare()


def track(options: argparse.Namespace) -> None:
    """Log what is not logged yet, and write where it is."""
    spec = read_record(options.spec, AggregateSpec)
    if spec.tracking.enabled:
        result: Tracked | NotTracked = _tracked(spec, options)
    else:
        result = NotTracked(reason=f"tracking={spec.tracking.name} logs nothing")
    write_sealed(options.out, to_json(TrackOutput(experiment=spec.experiment, result=result)))
    _print_line(spec, result)


def attach(options: argparse.Namespace) -> None:
    """Put the report among the artifacts of the sweep's run."""
    spec = read_record(options.spec, AggregateSpec)
    result = read_record(options.attach, TrackOutput).result
    if isinstance(result, Tracked):
        store = open_store(spec.tracking, options.root)
        with understandable(store.uri):
            patiently(lambda: attach_report(store, result.sweep, options.report), lambda: 0)


def _tracked(spec: AggregateSpec, options: argparse.Namespace) -> Tracked:
    started = time.monotonic()
    source = IngestSource(
        spec=spec,
        summary=read_record(options.aggregate / "summary.json", Summary),
        aggregate=options.aggregate,
        root=options.root,
    )
    store = open_store(spec.tracking, options.root)
    ledger = IngestLedger()
    with understandable(store.uri):
        done = patiently(lambda: _in_turn(store, source, options.report, ledger), lambda: len(ledger))
    return Tracked(
        uri=shown_uri(store.uri),
        experiments=done.experiments,
        sweep=done.sweep,
        measured=done.measured,
        compiled=done.compiled,
        champions=done.champions,
        unregistered=sum(
            isinstance(winner, Winner) and winner.editing_only for winner in source.summary.winners
        ),
        links=done.links,
        seconds=time.monotonic() - started,
    )


def _in_turn(store: MlflowStore, source: IngestSource, report: Path | None, ledger: IngestLedger) -> Ingested:
    """The whole ingestion while nobody else logs."""
    with exclusive(store) as check:
        ledger.check = check
        return ingest(store, source, report, ledger)


def _print_line(spec: AggregateSpec, result: Tracked | NotTracked) -> None:
    if isinstance(result, NotTracked):
        print(f"track {spec.experiment}: {result.reason}", file=sys.stderr)
        return
    print(
        f"track {spec.experiment}: measured {_counts(result.measured)}, only compiled "
        f"{_counts(result.compiled)}, {counted(len(result.champions), 'winner')} registered"
        f"{_unregistered(result)} · "
        f"{result.seconds:.1f} s",
        file=sys.stderr,
    )


def _unregistered(result: Tracked) -> str:
    if not result.unregistered:
        return ""
    return f", {result.unregistered} not: verified for editing only (verify=standard registers)"


def _counts(counts: TrackedCounts) -> str:
    parts = {"new": counts.new, "same": counts.same, "replaced": counts.replaced}
    return " + ".join(f"{count} {name}" for name, count in parts.items() if count) or "0"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
