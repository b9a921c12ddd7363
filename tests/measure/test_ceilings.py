"""Ceilings: kept by what they depend on, and measured."""

import json
import time
from pathlib import Path

import pytest

from pipeline.errors import WorkerError
from pipeline.measure import ceilings
from pipeline.measure.device_ceilings import SERIES, level_bandwidth
from pipeline.records.record import to_json
from tests.measure.clean import SERVER
from tests.measure.stand_ins import DEVICE

pytestmark = pytest.mark.alone


def test_measured_on_this_machine(tmp_path: Path) -> None:
    """Plausible figures in some seconds, and the second question is answered from the cache."""
    found = ceilings.measured(SERVER, "cpu", "this", tmp_path)
    for series in SERIES:
        points = getattr(found, series)
        assert points[0].bandwidth >= points[-1].bandwidth > 1e9
    assert all(
        plain.bandwidth <= best.bandwidth for plain, best in zip(found.triad_plain, found.triad, strict=True)
    )
    assert {"float32", "float64", "float16", "bfloat16"} <= found.matrix_flops.keys()
    assert found.matrix_flops.keys() == found.matrix_library.keys()
    assert found.vector_flops["float32"] > found.vector_flops["float64"] > 1e9
    assert 1e-8 < found.launch_seconds["region"] < 1e-3
    assert 1e-7 < found.launch_seconds["call"] < 1e-3
    last = level_bandwidth(found.copy, found.levels, found.levels[-1])
    assert last == found.copy[-1].bandwidth
    start = time.monotonic()
    assert ceilings.measured(SERVER, "cpu", "this", tmp_path) == found
    assert time.monotonic() - start < 0.2


def test_measured_again_after_a_broken_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another version, or half of one, is measured anew."""
    path = ceilings.cache_path(tmp_path, "cpu", "this")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"{")
    monkeypatch.setattr(ceilings, "TARGET", "tests.measure.stand_ins:serve_fixed")
    assert ceilings.measured(SERVER, "cpu", "this", tmp_path) == DEVICE
    assert json.loads(path.read_bytes())["vector_flops"] == {"float32": 50e9}
    assert to_json(DEVICE) == path.read_bytes()


@pytest.mark.parametrize("changed", ["boot", "driver", "cores", "quota", "highest_clock_khz", "torch"])
def test_other_circumstances(changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ceilings of before are not taken for those of now."""
    before = ceilings.cache_path(tmp_path, "cpu", "this")
    assert before == ceilings.cache_path(tmp_path, "cpu", "this")
    monkeypatch.setattr(ceilings, "circumstances", lambda kind: {changed: "something else"})
    assert ceilings.cache_path(tmp_path, "cpu", "this") != before


def test_a_failure_names_its_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ceilings there is no share of them: an error with the child's own words."""
    monkeypatch.setattr(ceilings, "TARGET", "tests.measure.stand_ins:serve_failing")
    with pytest.raises(WorkerError, match="no C\\+\\+ compiler"):
        ceilings.measured(SERVER, "cpu", "this", tmp_path)
