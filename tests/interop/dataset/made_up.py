"""Artifacts to export: a run of our own kernels as the stages leave it, and a large one with failures."""

import functools
import json
from pathlib import Path
from typing import Any

import msgspec

from pipeline.interop.dataset.dataset_export import ExportCounts, ExportSelection, export
from pipeline.interop.dataset.row_schema import DatasetRow
from pipeline.interop.dataset.source_texts import Licensing, Redactor, SourceTextReader
from pipeline.plan.config.options import declared_kernels
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.layout import output_path, spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import read_record, to_json
from pipeline.records.results.profiled import ProfileOutput
from pipeline.records.results.verified import VerifyOutput
from pipeline.store.atomic import write_atomic
from tests.execution.bundle.made_up import Run, make_run
from tests.paths import ROOT
from tests.report.sample_run import Case, write_run


def ours(root: Path) -> Run:
    """A softmax of this repository, every variant measured."""
    return make_run(root)


def sample(root: Path, cases: list[Case] | None = None) -> Path:
    """Kernels that are not here, on eight targets, with failures of several kinds."""
    spec = write_run(root, cases)
    write_atomic(spec_path(root, "aggregate", "sample-1"), to_json(spec))
    return root


def exported(root: Path, out: Path, **wanted: Any) -> ExportCounts:
    """Export with the kernels of this repository."""
    return export(ExportSelection(root=str(root), out=str(out), **wanted), declared(), ROOT)


@functools.cache
def declared() -> dict[str, Kernel]:
    """The kernels of this repository, composed once."""
    return declared_kernels(ROOT / "conf")


def rows(out: Path) -> list[DatasetRow]:
    """As they were written, each field checked."""
    return [
        msgspec.json.decode(line, type=DatasetRow) for line in (out / "rows.jsonl").read_bytes().splitlines()
    ]


def plain(out: Path, table: str = "rows") -> list[dict]:
    """The same without types."""
    return [json.loads(line) for line in (out / f"{table}.jsonl").read_bytes().splitlines()]


def fail_first(root: Path, run: Run, reason: str) -> str:
    """Have the first variant fail in verify for that reason; its id."""
    path = output_path(root, "verify", run.plan.tasks[0].row.verify, 0)
    output = read_record(path, VerifyOutput)
    first, *others = output.records
    failure = Failure(outcome=Outcome.WRONG_VALUE, reason=reason)
    failed = msgspec.structs.replace(first, result=failure)
    write_atomic(path, to_json(msgspec.structs.replace(output, records=(failed, *others))))
    path = output_path(root, "profile", run.plan.tasks[0].row.profile, 0)
    measured = read_record(path, ProfileOutput)
    rest = tuple(each for each in measured.records if each.variant.id != first.variant.id)
    write_atomic(path, to_json(msgspec.structs.replace(measured, records=rest)))
    return first.variant.id


def texts(root: Path, folder: Path = ROOT, **licensing: Any) -> SourceTextReader:
    """Of a store and a checkout."""
    return SourceTextReader(
        declared(),
        folder=folder,
        root=root,
        licensing=Licensing(**licensing),
        cleaner=Redactor(ROOT, root),
    )
