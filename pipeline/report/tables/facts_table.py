"""Tables of what explains a variant's time: static facts of its binary, hardware counters, diagnoses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.performance.diagnosis import diagnose
from pipeline.performance.metrics import BINARY_FACTS, ColumnType, configuration
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record, to_json
from pipeline.records.results.collection import Result
from pipeline.records.results.diagnosed import Finding
from pipeline.report.tables.variants_table import row_table

if TYPE_CHECKING:
    import pyarrow as pa


Choice = Literal["default", "first proposed", "best occupancy"]
Row = dict[str, Any]
"""Of the table."""

STATIC_FACTS: dict[str, ColumnType] = {
    "kernel": "string",
    "implementation": "string",
    "workload": "string",
    "dtype": "string",
    "hardware": "string",
    "kind": "string",
    "architecture": "string",
    "choice": "string",
    "configuration": "string",
    "outcome": "string",
    "reason": "string",
    **{metric.name: metric.type for metric in BINARY_FACTS},
    "matrix_instructions": "int64",
    "compile_seconds": "double",
    "variants": "int64",
    "compiled": "int64",
}


class FactsChoice(Record, frozen=True, kw_only=True):
    """The variant that stands for a kernel on a target."""

    choice: Choice
    result: Result
    variants: int
    """How many were proposed for this kernel, workload and target."""
    compiled: int


def choose(results: Sequence[Result]) -> tuple[FactsChoice, ...]:
    """The default variant and the one with the best occupancy bound, per kernel, workload and target.

    Where the default was not proposed (an optimization may switch techniques off) the first variant that was
    stands for it, and is named so; where the backend knows no occupancy (CPU) the second choice is left out.
    """
    cells: dict[tuple[str, ...], dict[str, Result]] = {}
    for result in results:
        task = result.task
        if task.recorded is not None:  # nothing was compiled
            continue
        key = (task.kernel, result.variant.implementation, task.workload, task.hardware)
        cells.setdefault(key, {}).setdefault(result.id, result)
    chosen: list[FactsChoice] = []
    for distinct in cells.values():
        group = list(distinct.values())
        compiled = sum(result.compiled is not None for result in group)
        default = next((result for result in group if result.default), None)
        bounded = [result for result in group if _occupancy(result) is not None]
        first: Choice = "default" if default else "first proposed"
        counts = {"variants": len(group), "compiled": compiled}
        chosen.append(FactsChoice(choice=first, result=default or group[0], **counts))
        if bounded:
            best = min(bounded, key=_preference)
            chosen.append(FactsChoice(choice="best occupancy", result=best, **counts))
    return tuple(chosen)


def facts_table(chosen: Sequence[FactsChoice]) -> "pa.Table":
    """One row per choice; a default that did not compile has its outcome and reason, and no facts."""
    return row_table(STATIC_FACTS, [_facts_row(entry) for entry in chosen])


def facts_markdown(rows: Sequence[Row]) -> str:
    """The table's first choices over the GPU targets, one table per kernel and workload, for the docs."""
    tables: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        # A CPU has none of these facts but its code size.
        if row["choice"] != "best occupancy" and not executes_on_host(row["kind"]):
            tables.setdefault((row["kernel"], row["implementation"], row["workload"]), []).append(row)
    return "\n".join(_markdown_table(group) for group in tables.values())


def matrix_instructions(result: Result) -> int | None:
    """Count of matrix instructions; 0 only where the instruction mix is known and has none."""
    if result.compiled is None or not result.compiled.facts.instructions:
        return None
    return result.compiled.facts.instructions.get("matrix", 0)


def _occupancy(result: Result) -> float | None:
    return result.compiled.facts.occupancy_bound if result.compiled else None


def _preference(result: Result) -> tuple[float, ...]:
    """Best occupancy first; among equals the one that spills least, then the default, then the smallest."""
    assert result.compiled is not None
    facts = result.compiled.facts
    return (-(facts.occupancy_bound or 0), facts.spills or 0, not result.default, facts.code_bytes or 0)


def _facts_row(entry: FactsChoice) -> dict[str, object]:
    result = entry.result
    task = result.task
    row: dict[str, object] = {metric.name: metric.value(result) for metric in BINARY_FACTS}
    compile_failure = result.failure if result.stage == "compile" else None
    return row | {
        "kernel": task.kernel,
        "implementation": result.variant.implementation,
        "workload": task.workload,
        "dtype": task.dtype,
        "hardware": task.hardware,
        "kind": task.kind,
        "architecture": result.architecture,
        "choice": entry.choice,
        "configuration": configuration(result),
        "outcome": str(compile_failure.outcome) if compile_failure else "passed",
        "reason": compile_failure.reason if compile_failure else None,
        "matrix_instructions": matrix_instructions(result),
        "compile_seconds": result.compile.seconds if result.compile else None,
        "variants": entry.variants,
        "compiled": entry.compiled,
    }


FACT_HEADINGS = {
    "registers": "registers",
    "spills": "spills (B)",
    "shared_memory": "shared memory (B)",
    "threads_per_block": "threads",
    "estimate_occupancy": "occupancy (estimate)",
    "estimate_occupancy_limiter": "limited by",
    "matrix_instructions": "matrix instructions",
    "code_bytes": "code (B)",
}
"""Of the columns that a reader sees."""


def _markdown_table(rows: Sequence[Row]) -> str:
    first = rows[0]
    lines = [
        f"### {first['kernel']} ({first['implementation']}) on {first['workload']}, {first['dtype']}",
        "",
        f"Variant ({first['choice']}): `{first['configuration']}`",
        "",
        "| target | architecture | " + " | ".join(FACT_HEADINGS.values()) + " |",
        "|---|---|" + "---:|" * len(FACT_HEADINGS),
    ]
    for row in rows:
        if row["outcome"] != "passed":
            cells = [f"{row['outcome']}: {row['reason']}"] + [""] * (len(FACT_HEADINGS) - 1)
        else:
            cells = [_cell(name, row[name]) for name in FACT_HEADINGS]
        lines.append(f"| {row['hardware']} | {row['architecture'] or '–'} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _cell(name: str, value: object) -> str:
    if value is None:
        return "–"
    if name == "estimate_occupancy" and isinstance(value, float):
        return f"{value:.0%}"
    return f"{value:,}" if isinstance(value, int) else str(value)


SCHEMA: dict[str, ColumnType] = {
    "task": "string",
    "variant": "string",
    "tool": "string",
    "launch": "int64",
    "kernel": "string",
    "counter": "string",
    "value": "double",
    "absent": "string",
}


def counters_table(results: Sequence[Result]) -> "pa.Table":
    """Values of the whole call (`launch` is null), then launch by launch.

    A counter that is not to be had has no value but the reason.
    """
    return row_table(SCHEMA, [row for result in results for row in _rows(result)])


def _rows(result: Result) -> Iterable[dict[str, object]]:
    counters = result.profiled.counters if result.profiled else None
    if counters is None:
        return
    who: dict[str, object] = {"task": result.task.task, "variant": result.id, "tool": counters.tool}
    for name, value in counters.values.items():
        yield who | {"counter": name, "value": value}
    for name, reason in counters.absent.items():
        yield who | {"counter": name, "absent": reason}
    for number, launch in enumerate(counters.kernels):
        for name, value in launch.values.items():
            yield who | {"launch": number, "kernel": launch.kernel, "counter": name, "value": value}


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
        _finding_row(result, finding)
        for result in results
        for finding in diagnose(result, declared.get(result.task.generate))
    ]
    return row_table(DIAGNOSES, rows)


def _finding_row(result: Result, finding: Finding) -> dict[str, object]:
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
