"""What bounds a problem: the level that holds its data, its mix of reads and writes, its dtype."""

import msgspec
import pytest

from pipeline.backends.devices.device_ceilings import PRODUCTS, envelope
from pipeline.measure.ceilings.problem_bounds import Traffic, beyond_caches, of_problem, products_of
from tests.measure.stand_ins import DEVICE, MB


def test_the_level_that_holds_the_data() -> None:
    """The ceiling is the one of the next smaller working set that was measured: never too low."""
    for size, bandwidth, level in (
        (1000, 100e9, "L2"),
        (8 * MB, 100e9, "L3"),
        (20 * MB, 80e9, "L3"),
        (1000 * MB, 20e9, "DRAM"),
    ):
        found = of_problem(DEVICE, Traffic(read=size / 2, written=size / 2), "float32")
        assert found.cache_bandwidth == pytest.approx(bandwidth)
        assert found.copy_bandwidth == 20e9
        assert found.level == level
    assert [(each.name, each.bandwidth) for each in found.levels] == [
        ("L2", 100e9),
        ("L3", 80e9),
        ("DRAM", 20e9),
    ]


def test_reading_is_faster_than_copying() -> None:
    """A problem that only reads is bounded by the bandwidth of reading, a copy by that of copying."""
    only_reads = of_problem(DEVICE, Traffic(read=1e9, written=0.0), "float32")
    mostly_reads = of_problem(DEVICE, Traffic(read=0.9e9, written=0.1e9), "float32")
    assert only_reads.cache_bandwidth == pytest.approx(30e9)
    assert 20e9 < mostly_reads.cache_bandwidth < 30e9


def test_a_disturbed_triad_does_not_make_writing_free() -> None:
    """A problem that only writes has a bound, however fast the triad seemed next to reading."""
    disturbed = msgspec.structs.replace(DEVICE, triad=envelope([(MB, 400e9), (256 * MB, 90e9)]))
    only_writes = of_problem(disturbed, Traffic(read=0.0, written=1e9), "float32")
    assert only_writes.cache_bandwidth == pytest.approx(60e9)


def test_a_triad_that_beats_the_mix() -> None:
    """Two reads and a write are never bounded below what a triad reached."""
    fast = msgspec.structs.replace(DEVICE, triad=envelope([(MB, 100e9), (256 * MB, 28e9)]))
    traffic = Traffic(read=0.8e9, written=0.4e9)
    assert of_problem(fast, traffic, "float32").cache_bandwidth == pytest.approx(28e9)
    assert of_problem(DEVICE, traffic, "float32").cache_bandwidth < 28e9


def test_flushed_caches() -> None:
    """Calls on flushed caches are bounded by the memory, however small their data."""
    found = of_problem(beyond_caches(DEVICE), Traffic(read=500.0, written=500.0), "float32")
    assert found.cache_bandwidth == pytest.approx(20e9)
    assert found.level == "DRAM"
    assert [level.name for level in found.levels] == ["DRAM"]


def test_peaks_by_dtype() -> None:
    """Halves in float32 where the unit has no faster halves; float64 in itself."""
    traffic = Traffic(read=1e6, written=1e6)
    device = msgspec.structs.replace(
        DEVICE, vector_flops={"float32": 50e9, "float64": 25e9, "bfloat16": 90e9, "float16": 20e9}
    )
    peaks = {name: of_problem(device, traffic, name).vector_flops for name in device.vector_flops}
    assert peaks == {"float32": 50e9, "float64": 25e9, "bfloat16": 90e9, "float16": 50e9}


def test_the_detour_over_tf32() -> None:
    """Three products of tf32 make one of float32: where these are faster they are the ceiling."""
    traffic = Traffic(read=1e6, written=1e6)
    gpu = msgspec.structs.replace(DEVICE, matrix_flops={"float32": 60e12, "tf32": 480e12, "float16": 900e12})
    assert of_problem(gpu, traffic, "float32").matrix_flops == pytest.approx(160e12)
    assert of_problem(gpu, traffic, "float16").matrix_flops == 900e12
    assert of_problem(DEVICE, traffic, "float32").matrix_flops == 200e9


def test_the_launch_goes_with_the_result() -> None:
    """Call and parallel region on a CPU."""
    found = of_problem(DEVICE, Traffic(read=1.0, written=1.0), "float32")
    assert found.launch_seconds == pytest.approx(3e-6)


def test_the_products_that_are_looked_at() -> None:
    """Enough of them for every dtype; a library may have none for integers, and then float32 counts."""
    traffic = Traffic(read=1e6, written=1e6)
    for dtype in (*PRODUCTS, "float8_e4m3fn", "int32", "bool"):
        needed = products_of(dtype)
        assert set(needed) <= set(PRODUCTS)
        there = {name: 7e9 for name in needed if name != "int8"}
        device = msgspec.structs.replace(DEVICE, matrix_flops=there)
        assert of_problem(device, traffic, dtype).matrix_flops == 7e9
    assert products_of("bfloat16") == ("bfloat16",)
    assert products_of("int8") == ("float32", "int8")
    assert products_of("int32") == ("float32",)
