"""Bounds of a variant's result, and how far they lie from measurements, those of a recorded space too."""

import gzip
import json
import sys
from pathlib import Path

import msgspec
import pytest

from pipeline.performance.bound_error import (
    Pair,
    ceiling_bound,
    declared_bandwidth_share,
    declared_bound,
    error_of,
    find_errors,
    geometry_of,
)
from pipeline.performance.metrics import metrics
from pipeline.performance.roofline import estimate_roofline_seconds
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.results.profiled import ProfileRecord
from pipeline.report.tables.estimate_error_table import error_lines, error_table
from tests.benchmarks import bound
from tests.performance.bound_results import GPU_PEAKS, LATENCY, cpu_task, facts, profiled, result, task


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


def test_a_full_launch_is_bound_by_the_roofline() -> None:
    """528 blocks on 132 multiprocessors of four places each: the plain roofline."""
    found = declared_bound(result())
    assert found is not None
    assert found.seconds == estimate_roofline_seconds(task()) == pytest.approx(1e-3)


def test_a_launch_of_few_blocks_is_slower() -> None:
    """One block computes with one multiprocessor."""
    found = declared_bound(result(grid=(1,)))
    assert found is not None
    assert found.longest.name == "spread"
    assert found.seconds == pytest.approx(132e-3)


def test_residency_from_the_occupancy_where_compile_did_not_say() -> None:
    """A quarter of 64 warps in blocks of four warps: four blocks."""
    launch = geometry_of(result(found=facts(resident_blocks=None)))
    assert launch is not None
    assert launch.block.resident == 4


def test_loads_in_flight_are_bounded_by_code_and_registers() -> None:
    """Four loads of 16 B a thread; with four registers no more than 16 B; shared memory on top."""
    launch = geometry_of(result())
    assert launch is not None
    assert launch.block.bytes_in_flight == 128 * 64 + 1024
    launch = geometry_of(result(found=facts(registers=4)))
    assert launch is not None
    assert launch.block.bytes_in_flight == 128 * 16 + 1024


def test_latency_counts_where_a_source_gives_it() -> None:
    """16 blocks have 147 kB in flight: 0.59 of 4 TB/s."""
    row = task(peaks=GPU_PEAKS | LATENCY, flops=1.0)
    found = declared_bound(result(row, grid=(16,)))
    assert found is not None
    assert found.longest.name == "latency"
    assert found.seconds == pytest.approx(2e8 * 2.5e-7 / (16 * 9216))
    assert declared_bandwidth_share(result(row, grid=(16,))) == pytest.approx(16 * 9216 / 2.5e-7 / 4e12)
    assert declared_bandwidth_share(result(grid=(16,))) is None


@pytest.mark.parametrize(
    "changed",
    [{"grid": None}, {"functions": ("one", "two")}, {"found": facts(threads_per_block=None)}],
)
def test_no_launch_without_its_facts(changed: dict[str, object]) -> None:
    """Then the bound is the plain roofline; of several kernels the first one's grid says too little."""
    found = result(**changed)  # type: ignore[arg-type]
    assert geometry_of(found) is None
    bound = declared_bound(found)
    assert bound is not None
    assert [term.name for term in bound.terms] == ["memory", "compute"]


def test_no_bound_without_peaks() -> None:
    """Neither declared nor measured: nothing is estimated, in no column."""
    found = result(task(peaks={}))
    assert declared_bound(found) is None and ceiling_bound(found) is None
    values = {column.name: column.value(found) for column in metrics() if column.name.startswith("estimate_")}
    assert values["estimate_least_seconds"] is values["estimate_ceiling_seconds"] is None
    assert values["estimate_blocks"] == 528


def test_ceilings_bound_a_measured_cpu_variant() -> None:
    """Of full vectors: the measured roofline, the reciprocal of its share."""
    row = cpu_task()
    found = result(row, facts(instructions={"vector_512": 9}), measured=profiled(row, 0.04))
    bound = ceiling_bound(found)
    assert bound is not None and found.profiled is not None
    assert bound.seconds == pytest.approx(0.04 * found.profiled.roofline_share)


@pytest.mark.parametrize(
    ("instructions", "slower"),
    [
        ({"vector_512": 1, "vector_128": 9}, 1),
        ({"vector_256": 9}, 1),  # two of 256 may issue where one of 512 does
        ({"vector_128": 9, "scalar_float": 2}, 2),
        ({"scalar_float": 9}, 8),
        ({"dot": 1, "vector_128": 9}, 1),  # does more than its width says
        ({"vector_scalable": 9}, 1),  # a width that the code does not name
        ({}, 1),
    ],
)
def test_narrow_vectors_lower_the_arithmetic_ceiling(instructions: dict[str, int], slower: int) -> None:
    """By no more than what holds on every processor."""
    row = cpu_task(bytes=1.0)
    bound = ceiling_bound(result(row, facts(instructions=instructions), measured=profiled(row, 1.0)))
    assert bound is not None
    assert bound.seconds == pytest.approx(slower * 2e9 / 2e11)


def test_narrow_vectors_of_a_processor_that_has_no_wider_ones() -> None:
    """With 256 bits at most, scalar code reaches an eighth."""
    row = cpu_task(bytes=1.0, limits={"vector_bits": 256})
    bound = ceiling_bound(result(row, facts(instructions={"scalar_float": 9}), measured=profiled(row, 1.0)))
    assert bound is not None
    assert bound.seconds == pytest.approx(8 * 2e9 / 2e11)


def test_every_estimate_is_called_one() -> None:
    """By the column's name and by its first word."""
    for column in metrics():
        assert column.name.startswith("estimate_") == column.meaning.startswith("Estimate:"), column.name


def test_results_without_limits_are_read() -> None:
    """Older plans have none."""
    old = msgspec.structs.replace(task(), limits={}, read=None)
    assert declared_bound(result(old)) is not None


def entry(sizes: tuple[int, int, int, int], time: float | str) -> dict[str, object]:
    """One configuration as the T4 format has it."""
    names = ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y")
    failed = isinstance(time, str)
    return {
        "configuration": dict(zip(names, sizes, strict=True)),
        "invalidity": "runtime" if failed else "correct",
        "correctness": 0 if failed else 1,
        "times": {},
        "measurements": [{"name": "time", "value": time, "unit": ""}],
    }


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Blocks of full warps, of half warps, and one that failed."""
    results = [
        entry((32, 4, 1, 1), 0.6),
        entry((16, 1, 1, 1), 1.2),
        entry((32, 8, 4, 4), "RuntimeFailedConfig"),
    ]
    content = gzip.compress(json.dumps({"results": results}).encode())
    (tmp_path / "convolution_milo_A100_T4.json.gz").write_bytes(content)
    return tmp_path


def test_only_what_ran_is_compared(recorded: Path) -> None:
    """Milliseconds become seconds; a failure is no time."""
    (path,) = recorded.iterdir()
    assert [time for _, time in bound.read(path)] == [pytest.approx(6e-4), pytest.approx(1.2e-3)]


def test_half_warps_take_twice_the_time(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """7.55 GFLOP at 19.5 TFLOP/s are 387 us; with half of the lanes 774."""
    monkeypatch.setattr(sys, "argv", ["bound", str(recorded)])
    bound.main()
    _, _, peaks, launch = capsys.readouterr().out.splitlines()
    assert peaks.startswith("| convolution, A100 | peaks | 2 | 387 µs | 600 µs | 1.55 |")
    assert launch.startswith("| convolution, A100 | peaks and launch | 2 | 387 µs, 774 µs | 600 µs | 1.55 |")


def test_an_empty_folder_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No table of nothing."""
    monkeypatch.setattr(sys, "argv", ["bound", str(tmp_path)])
    with pytest.raises(SystemExit):
        bound.main()
    assert "no *_T4.json.gz in" in capsys.readouterr().err
