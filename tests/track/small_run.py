"""A small made-up run with its tables, and an embedded store that is made once for all tests."""

import shutil
from pathlib import Path

import msgspec

from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.layout import entry_path
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import read_record, to_json
from pipeline.records.results.aggregated import Summary
from pipeline.records.results.collection import Result, collect
from pipeline.records.results.compiled import Compiled
from pipeline.stages import aggregate
from pipeline.store.integrity import SEAL
from pipeline.track.ingest import IngestSource
from tests.report.sample_run import Case, write_run

TRACKING = Tracking(name="mlflow", description="", enabled=True, uri="embedded", experiment="kernelmill")
SPACE = {"unroll": (1, 2, 4), "vectorize": (False, True)}
SIZES = {"rows": 64, "cols": 256}


def measured(workload: str = "bert_base", **changes: object) -> Case:
    """A task of six variants on the CPU; one of them is wrong."""
    wrong = ("verify", Outcome.WRONG_VALUE, "y[1, 3] = 0.25, expected 0.5")
    settings: dict[str, object] = {
        "kernel": "softmax",
        "workload": workload,
        "hardware": "cpu",
        "dtype": "float32",
        "implementation": "cpp",
        "space": SPACE,
        "dimensions": SIZES,
        "flops": 5.0 * 64 * 256,
        "bytes": 8.0 * 64 * 256,
        "eager": 1.9,
        "failures": {2: wrong},
    }
    return Case(**settings | changes)


def compiled(hardware: str = "h200") -> Case:
    """A task of four variants for a device that is absent."""
    space = {"BLOCK": (1024, 2048), "num_warps": (4, 8)}
    return measured(
        hardware=hardware, implementation="triton", dtype="float16", space=space, eager=None, failures={}
    )


def write_source(root: Path, cases: list[Case] | None = None, tracking: Tracking = TRACKING) -> IngestSource:
    """Stage outputs, store entries, spec and tables of a run under `root`."""
    spec = write_run(root, [measured(), compiled()] if cases is None else cases)
    spec = msgspec.structs.replace(spec, tracking=tracking)
    (root / "spec.json").write_bytes(to_json(spec))
    return source(root)


def source(root: Path) -> IngestSource:
    """What is to be ingested: from the files as they are now."""
    spec = read_record(root / "spec.json", AggregateSpec)
    results = collect(spec, root).results
    for result in results:
        if result.compile and isinstance(result.compile.result, Compiled):
            folder = entry_path(root, "compile", result.compile.entry)
            folder.mkdir(parents=True, exist_ok=True)
            for name in (result.compile.result.artifact, "softmax.cpp"):
                (folder / name).write_text("content")
    folder = root / "aggregate" / "sample"
    arguments = [
        "--spec",
        str(root / "spec.json"),
        "--out",
        str(folder / "summary.json"),
        "--root",
        str(root),
    ]
    assert aggregate.main(arguments) == 0
    summary = read_record(folder / "summary.json", Summary)
    return IngestSource(spec=spec, summary=summary, aggregate=folder, root=root)


def with_a_second_round(source: IngestSource, folder: Path) -> IngestSource:
    """The same, with tables in which every search of one round had a second one that halved the best time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    shutil.copytree(source.aggregate, folder, ignore=shutil.ignore_patterns(SEAL))
    path = folder / "rounds.parquet"
    table = pq.read_table(path)
    rows = [
        {**row, "round": number, "best_seconds": row["best_seconds"] and row["best_seconds"] / (number + 1)}
        for row in table.to_pylist()
        for number in (0, 1)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    return msgspec.structs.replace(source, aggregate=folder)


def results_of(source: IngestSource) -> tuple[Result, ...]:
    """What the stages wrote."""
    return collect(source.spec, source.root).results


def copy_store(template: Path, root: Path) -> None:
    """Give `root` an embedded store without waiting for its creation."""
    shutil.copytree(template / "mlflow", root / "mlflow")
