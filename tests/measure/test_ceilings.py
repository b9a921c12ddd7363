"""Ceilings: how they are read for a problem, kept, and measured."""

import json
import time
from pathlib import Path

import pytest

from pipeline.errors import WorkerError
from pipeline.measure import ceilings
from pipeline.measure.ceilings import DeviceCeilings, Traffic, better, beyond_caches, envelope, of_problem
from pipeline.records.record import to_json
from tests.measure.clean import SERVER
from tests.measure.stand_ins import DEVICE, MB

pytestmark = pytest.mark.alone


def test_a_disturbed_point_is_mended() -> None:
    """A smaller working set cannot be slower than a larger one."""
    points = envelope([(256, 20.0), (1, 100.0), (16, 0.5)])
    assert [(point.working_set, point.bandwidth) for point in points] == [(1, 100.0), (16, 20.0), (256, 20.0)]


def test_the_level_that_holds_the_data() -> None:
    """The ceiling is the one of the next smaller working set that was measured: never too low."""
    for size, bandwidth in ((1000, 100e9), (8 * MB, 100e9), (20 * MB, 80e9), (1000 * MB, 20e9)):
        found = of_problem(DEVICE, Traffic(read=size / 2, written=size / 2), "float32")
        assert found.cache_bandwidth == pytest.approx(bandwidth)
        assert found.copy_bandwidth == 20e9


def test_reading_is_faster_than_copying() -> None:
    """A problem that only reads is bounded by the bandwidth of reading, a copy by that of copying."""
    only_reads = of_problem(DEVICE, Traffic(read=1e9, written=0.0), "float32")
    mostly_reads = of_problem(DEVICE, Traffic(read=0.9e9, written=0.1e9), "float32")
    assert only_reads.cache_bandwidth == pytest.approx(30e9)
    assert 20e9 < mostly_reads.cache_bandwidth < 30e9


def test_flushed_caches() -> None:
    """Calls on flushed caches are bounded by the memory, however small their data."""
    found = of_problem(beyond_caches(DEVICE), Traffic(read=500.0, written=500.0), "float32")
    assert found.cache_bandwidth == pytest.approx(20e9)


def test_the_better_figures_are_kept() -> None:
    """Disturbances only lower a ceiling."""
    lower = DeviceCeilings(
        copy=envelope([(MB, 90e9), (16 * MB, 85e9), (256 * MB, 10e9)]),
        read=DEVICE.read,
        matrix_flops={"float32": 150e9, "bfloat16": 300e9},
        vector_flops=60e9,
    )
    both = better(DEVICE, lower)
    assert [point.bandwidth for point in both.copy] == [100e9, 85e9, 20e9]
    assert both.matrix_flops == {"float32": 200e9, "float16": 3e9, "bfloat16": 300e9}
    assert both.vector_flops == 60e9


def test_measured_on_this_machine(tmp_path: Path) -> None:
    """Plausible figures, and the second question is answered from the cache."""
    found = ceilings.measured(SERVER, "cpu", "this", tmp_path)
    assert found.copy[0].bandwidth >= found.copy[-1].bandwidth > 1e9
    assert found.read[0].bandwidth >= found.read[-1].bandwidth > 1e9
    assert found.vector_flops > 1e9
    assert found.matrix_flops["float32"] > 1e9
    start = time.monotonic()
    assert ceilings.measured(SERVER, "cpu", "this", tmp_path) == found
    assert time.monotonic() - start < 0.2


def test_measured_again_after_a_broken_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another version, or half of one, is measured anew."""
    path = ceilings._cache_path(tmp_path, "this")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"{")
    monkeypatch.setattr(ceilings, "TARGET", "tests.measure.stand_ins:serve_fixed")
    assert ceilings.measured(SERVER, "cpu", "this", tmp_path) == DEVICE
    assert json.loads(path.read_bytes())["vector_flops"] == 50e9
    assert to_json(DEVICE) == path.read_bytes()


def test_a_failure_names_its_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ceilings there is no share of them: an error with the child's own words."""
    monkeypatch.setattr(ceilings, "TARGET", "tests.measure.stand_ins:serve_failing")
    with pytest.raises(WorkerError, match="no C\\+\\+ compiler"):
        ceilings.measured(SERVER, "cpu", "this", tmp_path)
