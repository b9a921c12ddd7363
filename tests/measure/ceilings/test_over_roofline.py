"""Results above the roofline: what is said of them, and what is believed."""

import msgspec

from pipeline.measure.ceilings.roofline_share import WorkPerCall, suspicions, too_good
from pipeline.records.results.profiled import Ceilings, LevelCeiling

CEILINGS = Ceilings(
    copy_bandwidth=20e9,
    cache_bandwidth=20e9,
    matrix_flops=200e9,
    vector_flops=50e9,
    level="DRAM",
    levels=(
        LevelCeiling(name="L2", capacity=1 << 20, bandwidth=400e9),
        LevelCeiling(name="L3", capacity=1 << 25, bandwidth=100e9),
        LevelCeiling(name="DRAM", capacity=None, bandwidth=20e9),
    ),
)
MEMORY = WorkPerCall(flops=1e6, read=0.75e9, written=0.25e9, unit="vector", dtype="float32", tensor_bytes=1e9)
COMPUTE = WorkPerCall(flops=8e9, read=1e6, written=1e6, unit="matrix", dtype="float32", tensor_bytes=2e6)


def causes(work: WorkPerCall, seconds: float) -> list[str]:
    """The causes in their order."""
    return [each.cause for each in suspicions(work, CEILINGS, seconds)]


def test_the_ceilings_own_uncertainty() -> None:
    """A few per cents above a measured ceiling are believed."""
    assert too_good(MEMORY, CEILINGS, 0.05 / 1.05) is None


def test_faster_than_its_level() -> None:
    """A rate that a nearer cache has speaks for data that stayed there: the level is named."""
    reason = too_good(MEMORY, CEILINGS, 0.0125)
    assert reason is not None
    assert reason.startswith(
        "4.00 of the roofline: 80 GB/s where the device reaches 20. What may be wrong: (1) data that stay in "
        "caches between calls: L3 would deliver so fast; (2) work left out: DRAM cannot deliver"
    )
    assert causes(MEMORY, 0.0125) == ["cache_resident", "skipped_work", "formula"]
    assert "L2 would" in suspicions(MEMORY, CEILINGS, 0.005)[0].text


def test_faster_than_every_level() -> None:
    """No cache explains a rate above them all: work was left out, or the formula is wrong."""
    assert causes(MEMORY, 0.001) == ["skipped_work", "formula"]
    assert "no level of the memory" in suspicions(MEMORY, CEILINGS, 0.001)[0].text


def test_a_formula_beyond_the_tensors() -> None:
    """A formula that counts more bytes than inputs and outputs hold is the first to be looked at."""
    wrong = msgspec.structs.replace(MEMORY, tensor_bytes=0.5e9)
    assert causes(wrong, 0.0125) == ["formula", "cache_resident", "skipped_work"]
    assert suspicions(wrong, CEILINGS, 0.0125)[0].text == (
        "`cost.bytes` counts 1e+09 bytes where inputs and outputs hold 5e+08"
    )


def test_more_operations_than_the_peak() -> None:
    """Of a product also a narrower type."""
    reason = too_good(COMPUTE, CEILINGS, 0.02)
    assert reason is not None
    assert "400 GFLOP/s where the device reaches 200" in reason
    assert "narrower type" in reason and "cost.flops" in reason
    assert causes(COMPUTE, 0.02) == ["skipped_work", "formula"]
    vector = msgspec.structs.replace(COMPUTE, unit="vector")
    assert "narrower" not in suspicions(vector, CEILINGS, 0.02)[0].text
