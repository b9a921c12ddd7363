"""Verdicts as a table: one row per candidate. In: verdicts. Out: a CSV file, written whole or not at all."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pipeline.records.outcome import Failure
from pipeline.records.results.judged import Verdict
from pipeline.records.results.profiled import Comparison, ConfidenceInterval, Profiled
from pipeline.records.results.timed import TimedRecord
from pipeline.store.atomic import write_atomic

COLUMNS = (
    *("problem", "solution", "outcome", "reason", "share", "checks"),
    *("where", "device", "calls", "seconds", "peak_memory", "notes", "id"),
)


TIMED_BASELINES = ("eager", "compile")
TIMED_COLUMNS = (
    *("time_outcome", "time_reason", "time_seconds", "time_seconds.low", "time_seconds.high"),
    *(
        f"{what}.{name}"
        for name in TIMED_BASELINES
        for what in ("baseline_seconds", "speedup", "speedup_low", "speedup_high", "verdict")
    ),
    *(
        "estimated_bound_seconds",
        "estimated_bound_share",
        "held_out_sizes",
        "held_out_not_faster",
        "time_notes",
    ),
)
"""Only where candidates were timed; empty for those that were refused. `estimated_…`: no measurement."""


def write_table(path: Path, verdicts: Sequence[Verdict], timed: Sequence[TimedRecord] | None = None) -> None:
    """Write `verdicts.csv`; StoreError where it cannot be written. `timed`: None where nothing was timed."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    found = {(each.problem, each.solution): each for each in timed or ()}
    writer.writerow(COLUMNS if timed is None else (*COLUMNS, *TIMED_COLUMNS))
    for verdict in verdicts:
        more = () if timed is None else _timed(found.get((verdict.problem, verdict.solution)))
        writer.writerow((*_row(verdict), *more))
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
        "" if verdict.peak_memory is None else str(verdict.peak_memory),
        _line("; ".join(verdict.notes)),
        verdict.id,
    )


def _timed(record: TimedRecord | None) -> tuple[str, ...]:
    """Empty cells of a candidate that was refused."""
    if record is None:
        return ("",) * len(TIMED_COLUMNS)
    result = record.result
    if isinstance(result, Failure):
        cells = [result.outcome.value, _line(result.reason), *[""] * 3, *[""] * 5 * len(TIMED_BASELINES)]
    else:
        cells = ["passed", "", *_interval(result.time)]
        for name in TIMED_BASELINES:
            found = record.compared(name)
            cells += [""] * 5 if found is None else [*_compared(result, found)]
    bound, share = record.estimate, record.bound_share
    slower = record.only_declared("eager")
    return (
        *cells,
        "" if bound is None else f"{bound.seconds:.4g}",
        "" if share is None else f"{share:.4g}",
        "; ".join(sizes_text(each.sizes) for each in record.held_out),
        "" if slower is None else "; ".join(map(sizes_text, slower)),
        "" if isinstance(result, Failure) else _line("; ".join(_time_notes(result))),
    )


def _time_notes(result: Profiled) -> list[str]:
    return [*result.notes, *(f"no {each.baseline}: {each.reason}" for each in result.absent)]


def _compared(result: Profiled, found: Comparison) -> Iterator[str]:
    yield f"{result.baseline_time(found).value:.6g}"
    yield from _interval(found.speedup)
    yield found.verdict


def _interval(found: ConfidenceInterval) -> tuple[str, str, str]:
    return f"{found.value:.6g}", f"{found.low:.6g}", f"{found.high:.6g}"


def sizes_text(sizes: Mapping[str, int]) -> str:
    """`rows=255 columns=511`."""
    return " ".join(f"{name}={value}" for name, value in sizes.items())


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
