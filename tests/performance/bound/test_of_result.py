"""Bounds of variants as the stages leave them."""

import msgspec
import pytest

from pipeline.performance.bound.of_result import (
    ceiling_bound,
    declared_bandwidth_share,
    declared_bound,
    geometry_of,
)
from pipeline.performance.metrics import metrics
from pipeline.performance.roofline import estimate_roofline_seconds
from tests.performance.bound.results import GPU_PEAKS, LATENCY, cpu_task, facts, profiled, result, task


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
