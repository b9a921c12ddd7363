"""What tracking costs: results of many variants, made from records, into a fresh MLflow store, and again.

    python -m tests.benchmarks.tracking [--variants 1000] [--tasks 10] [--server] [--uri postgresql://…]

Prints the wall time of the stage as Snakemake would run it (a new process, the store made by it), then, in
one process, the seconds in all, per run, and where they go; and the same for what is there already. The
binaries and sources have the size of those of the C++ softmax. Run it on a quiet machine.
"""

import argparse
import contextlib
import functools
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from pipeline.records.layout import entry_path
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import read_record, to_json
from pipeline.records.results.aggregated import Summary
from pipeline.records.results.compiled import Compiled
from pipeline.stages import aggregate
from pipeline.track.ingest import IngestSource, ingest
from tests.track.mlflow_server import serving
from tests.track.small_run import TRACKING, measured

BINARY, SOURCE = 16_488, 4_000  # bytes: of the C++ softmax and its source
PARTS = {
    "read the records": (
        "pipeline.track.runs.task_outline.read_files",
        "pipeline.track.runs.task_outline.collect",
    ),
    "lay out the runs": ("pipeline.track.runs.task_outline.run_of",),
    "runs, in bulk": ("pipeline.track.stores.mlflow_database.write_runs",),
    "  their artifacts": ("pipeline.track.stores.mlflow_database.put_local_artifacts",),
    "create_run": ("mlflow.MlflowClient.create_run",),
    "log_batch": ("mlflow.MlflowClient.log_batch",),
    "log_inputs": ("mlflow.MlflowClient.log_inputs",),
    "set_terminated": ("mlflow.MlflowClient.set_terminated",),
    "other artifacts": ("pipeline.track.runs.run_writing.put_artifacts",),
    "search_runs": ("mlflow.MlflowClient.search_runs",),
    "models": ("pipeline.track.registered_models.register",),
    "chart pages": ("pipeline.track.chart_pages.tasks", "pipeline.track.chart_pages.winners"),
}
"""What is timed, by the functions that do it; where one calls another, both have the time."""


def made(root: Path, variants: int, tasks: int) -> None:
    """Stage outputs, store entries, spec and tables of so many measured variants."""
    from tests.report.sample_run import write_run

    per_task = variants // tasks
    space = {
        "unroll": tuple(range(per_task // 10)),
        "vectorize": (False, True),
        "threads_grain": (1, 4, 16, 64, 256),
    }
    cases = [measured(f"workload{number}", space=space, failures={}) for number in range(tasks)]
    spec = msgspec.structs.replace(write_run(root, cases), tracking=TRACKING)
    (root / "spec.json").write_bytes(to_json(spec))
    noise = random.Random(7)
    for result in _collected(spec, root):
        assert result.compile is not None and isinstance(result.compile.result, Compiled)
        folder = entry_path(root, "compile", result.compile.entry)
        (folder / "sources").mkdir(parents=True, exist_ok=True)
        (folder / result.compile.result.artifact).write_bytes(noise.randbytes(BINARY))
        (folder / "softmax.cpp").write_text("x" * SOURCE)
    arguments = ["--spec", str(root / "spec.json"), "--out", str(root / "aggregate" / "summary.json")]
    assert aggregate.main([*arguments, "--root", str(root)]) == 0


def _collected(spec: AggregateSpec, root: Path) -> tuple[Any, ...]:
    from pipeline.records.results import collection

    return collection.collect(spec, root).results


def source(root: Path, uri: str) -> IngestSource:
    """What is to be ingested."""
    spec = read_record(root / "spec.json", AggregateSpec)
    spec = msgspec.structs.replace(spec, tracking=msgspec.structs.replace(TRACKING, uri=uri))
    return IngestSource(
        spec=spec,
        summary=read_record(root / "aggregate" / "summary.json", Summary),
        aggregate=root / "aggregate",
        root=root,
    )


@contextlib.contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Seconds by part, while the block runs; of all threads together."""
    import importlib

    seconds = dict.fromkeys(PARTS, 0.0)
    undo: list[Callable[[], None]] = []
    for part, functions in PARTS.items():
        for path in functions:
            owner_path, _, name = path.rpartition(".")
            module, _, cls = owner_path.rpartition(".")
            owner = (
                getattr(importlib.import_module(module), cls)
                if cls[0].isupper()
                else importlib.import_module(owner_path)
            )
            original = getattr(owner, name)
            setattr(owner, name, _counting(original, part, seconds))
            undo.append(functools.partial(setattr, owner, name, original))
    try:
        yield seconds
    finally:
        for restore in undo:
            restore()


def _counting(function: Callable[..., Any], part: str, seconds: dict[str, float]) -> Callable[..., Any]:
    @functools.wraps(function)
    def counting(*arguments: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            seconds[part] += time.perf_counter() - started

    return counting


def in_process(root: Path, uri: str, what: str) -> None:
    """One ingestion, with its parts."""
    from pipeline.track.stores.mlflow_store import exclusive, open_store

    started, processor = time.perf_counter(), time.process_time()
    store = open_store(msgspec.structs.replace(TRACKING, uri=uri), root)
    opened = time.perf_counter() - started
    with timed() as seconds, exclusive(store):
        done = ingest(store, source(root, uri), None)
    total, processor = time.perf_counter() - started, time.process_time() - processor
    counts = done.measured
    runs = counts.new + counts.same + counts.replaced
    each = f"{total / runs * 1e3:.1f} ms a run ({counts.new} new, {counts.same} same)"
    print(f"{what}: {total:.1f} s ({processor:.1f} s of processor), {each}")
    print(f"  {'import and open':<20} {opened:7.2f} s")
    for part, spent in seconds.items():
        if spent >= 0.005:
            print(f"  {part:<20} {spent:7.2f} s")
    print(flush=True)


def as_a_job(root: Path, what: str) -> None:
    """The stage in a process of its own, as Snakemake runs it where no warm worker is."""
    arguments = ["--spec", str(root / "spec.json"), "--aggregate", str(root / "aggregate")]
    command = [sys.executable, "-m", "pipeline.stages.track", *arguments, "--out", str(root / "tracked.json")]
    started, processor = time.perf_counter(), _children_seconds()
    subprocess.run([*command, "--root", str(root)], check=True, stderr=subprocess.DEVNULL)
    total, processor = time.perf_counter() - started, _children_seconds() - processor
    print(f"{what}: {total:.1f} s ({processor:.1f} s of processor)\n", flush=True)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Embedded first, then what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variants", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--server", action="store_true", help="also through an MLflow server over SQLite")
    parser.add_argument("--uri", help="also into this tracking store")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        root = Path(scratch) / "artifacts"
        made(root, options.variants, options.tasks)
        size = len(to_json(_collected(read_record(root / "spec.json", AggregateSpec), root)[0]))
        print(
            f"{options.variants} variants in {options.tasks} tasks, {size / 1e3:.0f} kB of records each; "
            f"{len(os.sched_getaffinity(0))} cores\n"
        )
        as_a_job(root, "the stage as a job, store made, all new (SQLite)")
        as_a_job(root, "the stage as a job, all known (SQLite)")
        (root / "mlflow").rename(root / "first")
        in_process(root, "embedded", "SQLite, store made, all new")
        in_process(root, "embedded", "SQLite, all known")
        if options.uri:
            in_process(root, options.uri, "the store of --uri, all new")
            in_process(root, options.uri, "the store of --uri, all known")
        if options.server:
            server_root = Path(scratch) / "server"
            (server_root / "mlflow").mkdir(parents=True)
            with serving(server_root) as base:
                in_process(root, base, "server over SQLite, all new")
                in_process(root, base, "server over SQLite, all known")


if __name__ == "__main__":
    main()
