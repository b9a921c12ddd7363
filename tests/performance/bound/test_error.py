"""The error of the bounds."""

import msgspec
import pytest

from pipeline.performance.bound.error import Pair, error_of, find_errors
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.profiled import ProfileRecord
from pipeline.report.tables.estimate_error_table import error_lines, error_table
from tests.performance.bound.results import cpu_task, facts, profiled, result, task


def pairs(*values: tuple[float, float]) -> list[Pair]:
    """(estimate, measured) each."""
    return [Pair(estimate=estimate, measured=measured) for estimate, measured in values]


def test_ratios() -> None:
    """Measured over estimated: least, median, and how many lie below the bound."""
    error = error_of(pairs((1, 2), (1, 4), (2, 1)))
    assert error is not None
    assert (error.variants, error.ratio_least, error.ratio_median, error.below) == (3, 0.5, 2.0, 1)


def test_ranks() -> None:
    """The same order is 1, the opposite one -1."""
    same, other = error_of(pairs((1, 5), (2, 6), (3, 9))), error_of(pairs((1, 9), (2, 6), (3, 5)))
    assert same is not None and other is not None
    assert (same.kendall, same.spearman, same.best) == (pytest.approx(1), pytest.approx(1), 1.0)
    assert (other.kendall, other.spearman) == (pytest.approx(-1), pytest.approx(-1))
    assert other.best == pytest.approx(5 / 9)


def test_one_bound_for_all_ranks_nothing() -> None:
    """Absent, not zero: a correlation of nothing is not known."""
    error = error_of(pairs((1, 5), (1, 6), (1, 9)))
    assert error is not None
    assert (error.kendall, error.spearman, error.best, error.distinct) == (None, None, None, 1)


def test_nothing_measured() -> None:
    """No error without a measurement."""
    assert error_of([]) is None
    assert find_errors([result()]) == []
    assert error_table([]).num_rows == 0


def measured(seconds: float) -> list[object]:
    """A GPU task that was measured: launches of 528 and of 33 blocks."""
    row = task(device_present=True)
    return [
        result(row, grid=(528,), measured=profiled(row, seconds)),
        result(row, facts(code_bytes=1), grid=(33,), measured=profiled(row, 4 * seconds)),
    ]


def test_each_basis_has_its_row() -> None:
    """Declared peaks, those with the launch, and measured ceilings are never mixed."""
    found = {entry.basis: entry for entry in find_errors(measured(5.0))}  # type: ignore[arg-type]
    assert list(found) == ["declared_peaks", "declared_peaks_and_launch", "measured_ceilings"]
    assert found["declared_peaks"].error.distinct == 1
    assert found["declared_peaks_and_launch"].error.distinct == 2
    assert found["declared_peaks_and_launch"].error.ratio_least == pytest.approx(5.0 / 1e-3)


def test_a_cpu_has_no_declared_peaks() -> None:
    """Only what was measured bounds it; 0.1 GB do not fit its cache."""
    row = cpu_task()
    (entry,) = find_errors([result(row, measured=profiled(row, 0.04))])
    assert (entry.basis, entry.fits_cache) == ("measured_ceilings", False)


def test_what_was_refused_is_counted() -> None:
    """A result above the roofline has no time, but would have been a violation."""
    row = cpu_task()
    kept = result(row, facts(instructions={"vector_512": 1}), measured=profiled(row, 0.04))
    assert kept.profile is not None
    failure = Failure(outcome=Outcome.OVER_ROOFLINE, reason="2.00 of the roofline")
    refused = msgspec.structs.replace(
        kept, profile=ProfileRecord(**msgspec.structs.asdict(kept.profile) | {"result": failure})
    )
    (entry,) = find_errors([kept, refused])
    assert (entry.refused, entry.error.variants, entry.error.below) == (1, 1, 0)
    (line,) = error_lines(error_table([entry]).to_pylist())
    assert line == (
        "estimate on cpu from measured ceilings and the variant's code: a measured call takes 4.00 times as "
        "long (medians of 1 task), 0 of 1 below the bound, 1 more refused as over_roofline"
    )


def test_the_table_says_what_the_records_say() -> None:
    """One row per task and basis; ranks that are not known are null."""
    table = error_table(find_errors(measured(5.0)))  # type: ignore[arg-type]
    rows = {row["basis"]: row for row in table.to_pylist()}
    assert rows["declared_peaks"]["kernel"] == "matmul"
    assert rows["declared_peaks"]["kendall"] is None
    assert rows["declared_peaks"]["fits_cache"] is False
    assert rows["declared_peaks_and_launch"]["best"] == 1.0
