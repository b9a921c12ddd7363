"""Candidates from elsewhere that were timed, as a table for the terminal. In: their records. Out: lines."""

from collections.abc import Sequence

from pipeline.execution.run_results import aligned
from pipeline.performance import quantities
from pipeline.performance.quantities import SIGNS_MEAN
from pipeline.records.outcome import Failure
from pipeline.records.results.timed import TimedRecord
from pipeline.verify.candidates.verdict_table import TIMED_BASELINES, sizes_text

_HEADINGS = ("problem", "candidate", "time", "vs eager", "vs compile", "of the estimated bound")
BOUND = "estimated bound: from the operators of Model, no measurement"


def timing_lines(records: Sequence[TimedRecord]) -> list[str]:
    """One line for each candidate, problem by problem; notes on other sizes and failures below."""
    ordered = sorted(records, key=lambda each: (each.problem, each.solution))
    measured = [each for each in ordered if not isinstance(each.result, Failure)]
    rows = [_HEADINGS, *map(_row, measured)] if measured else []
    lines = aligned(rows, indent=0)
    if measured:
        lines += [SIGNS_MEAN, BOUND]
    for each in ordered:
        name = f"{each.problem} {each.solution}"
        if isinstance(each.result, Failure):
            lines.append(f"not timed: {name}: {each.result.outcome}: {each.result.reason}")
        else:
            lines += [f"no {gone.baseline} for {name}: {gone.reason}" for gone in each.result.absent]
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
        "-" if share is None else quantities.share(share),
    )


def _speedup(record: TimedRecord, name: str) -> str:
    found = record.compared(name)
    return "-" if found is None else quantities.speedup(found.speedup, found.verdict)
