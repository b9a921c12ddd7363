"""Candidates from elsewhere that were timed, as a table for the terminal. In: their records. Out: lines."""

from collections.abc import Sequence

from pipeline.performance import quantities
from pipeline.records.outcome import Failure
from pipeline.records.results.timed import TimedRecord
from pipeline.verify.candidates.verdict_table import TIMED_BASELINES, sizes_text

_HEADINGS = ("problem", "candidate", "time", "vs eager", "vs compile", "of the estimated bound")
LEGEND = (
    "faster, slower: with its interval of 95 %; estimated bound: from the operators of Model, no measurement"
)


def timing_lines(records: Sequence[TimedRecord]) -> list[str]:
    """One line for each candidate, problem by problem; notes on other sizes and failures below."""
    ordered = sorted(records, key=lambda each: (each.problem, each.solution))
    measured = [each for each in ordered if not isinstance(each.result, Failure)]
    rows = [_HEADINGS, *map(_row, measured)] if measured else []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    if measured:
        lines.append(f"({LEGEND})")
    for each in ordered:
        name = f"{each.problem} {each.solution}"
        if isinstance(each.result, Failure):
            lines.append(f"not timed: {name}: {each.result.outcome}: {each.result.reason}")
        slower = each.only_declared("eager")
        if slower:
            sizes = ", ".join(map(sizes_text, slower))
            lines.append(f"faster than eager on the declared sizes only: {name}: not on {sizes}")
    return lines


def _row(record: TimedRecord) -> tuple[str, ...]:
    assert not isinstance(record.result, Failure)
    share = record.bound_share
    return (
        record.problem,
        record.solution,
        quantities.seconds(record.result.time.value),
        *(_speedup(record, name) for name in TIMED_BASELINES),
        "" if share is None else f"~{quantities.share(share)}",
    )


def _speedup(record: TimedRecord, name: str) -> str:
    found = record.compared(name)
    if found is None:
        return "–"
    low, value, high = (
        f"{each:.2f}" for each in (found.speedup.low, found.speedup.value, found.speedup.high)
    )
    return f"{value}x ({low}–{high}) {found.verdict}"
