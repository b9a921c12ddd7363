"""Verdicts as a table: one row per candidate. In: verdicts. Out: a CSV file, written whole or not at all."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pipeline.records.results.judged import Verdict
from pipeline.store.atomic import write_atomic

COLUMNS = (
    *("problem", "solution", "outcome", "reason", "share", "checks"),
    *("where", "device", "calls", "seconds", "notes", "id"),
)


def write_table(path: Path, verdicts: Sequence[Verdict]) -> None:
    """Write `verdicts.csv`; StoreError where it cannot be written."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_row(verdict) for verdict in verdicts)
    write_atomic(path, stream.getvalue().encode())


def _row(verdict: Verdict) -> tuple[str, ...]:
    return (
        verdict.problem,
        verdict.solution,
        verdict.outcome.value,
        _line(verdict.reason),
        "" if verdict.share is None else f"{verdict.share:.4g}",
        ";".join(verdict.checks),
        where_text(verdict),
        verdict.device,
        str(verdict.calls),
        f"{verdict.seconds:.2f}",
        _line("; ".join(verdict.notes)),
        verdict.id,
    )


def where_text(verdict: Verdict) -> str:
    """`interpreter; compiled for h200`, `host`; empty where it did not run."""
    parts = [verdict.where or "", f"compiled for {verdict.compiled_for}" if verdict.compiled_for else ""]
    return "; ".join(part for part in parts if part)


def _line(text: str) -> str:
    """One line, and nothing that a terminal or a spreadsheet would act on."""
    line = " ".join(text.split())
    return "".join(character if character.isprintable() else "?" for character in line)


def summary(verdicts: Sequence[Verdict]) -> str:
    """`12 candidates: 7 passed, 3 wrong_value, 2 tampered`."""
    counts = Counter(verdict.outcome.value for verdict in verdicts)
    passed = counts.pop("passed", 0)
    parts = [f"{passed} passed", *(f"{count} {outcome}" for outcome, count in counts.most_common())]
    plural = "" if len(verdicts) == 1 else "s"
    return f"{len(verdicts)} candidate{plural}: {', '.join(parts)}"
