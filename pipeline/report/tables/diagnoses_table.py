"""The table `diagnoses`: results and what was declared in, one row per finding out."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.performance.diagnosis import diagnose
from pipeline.performance.metrics import ColumnType, configuration
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import to_json
from pipeline.records.results.collection import Result
from pipeline.records.results.diagnosed import Finding
from pipeline.report.tables.variants_table import row_table

if TYPE_CHECKING:
    import pyarrow as pa

DIAGNOSES: dict[str, ColumnType] = {
    "task": "string",
    "kernel": "string",
    "workload": "string",
    "hardware": "string",
    "variant": "string",
    "implementation": "string",
    "configuration": "string",
    "code": "string",
    "basis": "string",
    "estimate_gain_at_most": "double",
    "sentence": "string",
    "evidence": "string",
    "suggestions": "string",
}


def diagnoses_table(results: Sequence[Result], declared: Mapping[str, GenerateSpec]) -> "pa.Table":
    """Evidence and suggestions are JSON, as their records are."""
    rows = [
        _row(result, finding)
        for result in results
        for finding in diagnose(result, declared.get(result.task.generate))
    ]
    return row_table(DIAGNOSES, rows)


def _row(result: Result, finding: Finding) -> dict[str, object]:
    row: dict[str, object] = {
        name: getattr(result.task, name) for name in ("task", "kernel", "workload", "hardware")
    }
    return row | {
        "variant": result.id,
        "implementation": result.variant.implementation,
        "configuration": configuration(result),
        "code": str(finding.code),
        "basis": finding.basis,
        "estimate_gain_at_most": finding.gain_at_most,
        "sentence": finding.sentence,
        "evidence": to_json(finding.evidence).decode(),
        "suggestions": to_json(finding.suggestions).decode(),
    }
