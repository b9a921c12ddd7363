"""Ceilings: kept by what they depend on, and measured."""

import json
import os
import time
from pathlib import Path

import grimp
import msgspec
import pytest

from pipeline.backends.devices import device_registry as registry
from pipeline.backends.devices.cpu.measuring import CpuMeasurement
from pipeline.backends.devices.device_ceilings import BASE, PRODUCTS, SERIES, level_bandwidth
from pipeline.measure.ceilings import ceiling_measurement
from pipeline.records.errors import WorkerError
from pipeline.records.record import to_json
from pipeline.store.integrity import write_sealed
from tests.measure.clean import SERVER, THIS_CPU
from tests.measure.stand_ins import DEVICE, NOTES
from tests.paths import ROOT

pytestmark = pytest.mark.alone
SESSION_CACHE = os.environ["XDG_CACHE_HOME"]
FIXED = "tests.measure.stand_ins:serve_fixed"
ASKED = "tests.measure.stand_ins:serve_asked"
FAILING = "tests.measure.stand_ins:serve_failing"


def device(cache: Path, name: str = "this") -> ceiling_measurement.CeilingsDevice:
    """A processor whose figures a checkout keeps in `cache`."""
    return ceiling_measurement.CeilingsDevice("cpu", name, cache)


@pytest.fixture(autouse=True)
def user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing is taken from the user's own cache, or put there."""
    folder = tmp_path / "user"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def test_measured_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plausible figures in some seconds; the second question and other tests are answered from the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", SESSION_CACHE)
    found = ceiling_measurement.measured(SERVER, device(tmp_path, THIS_CPU))
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
    assert ceiling_measurement.measured(SERVER, device(tmp_path, THIS_CPU)) == found
    assert time.monotonic() - start < 0.2


def test_measured_again_after_a_broken_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another version, or half of one, is measured anew."""
    path = ceiling_measurement.cache_path(device(tmp_path))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"{")
    monkeypatch.setattr(ceiling_measurement, "TARGET", FIXED)
    assert ceiling_measurement.measured(SERVER, device(tmp_path)) == DEVICE
    assert json.loads(path.read_bytes())["vector_flops"] == {"float32": 50e9}
    assert to_json(DEVICE) == path.read_bytes()


@pytest.mark.parametrize("changed", ["boot", "driver", "cores", "quota", "highest_clock_khz", "torch"])
def test_other_circumstances(changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ceilings of before are not taken for those of now."""
    before = ceiling_measurement.cache_path(device(tmp_path))
    assert before == ceiling_measurement.cache_path(device(tmp_path))
    monkeypatch.setattr(CpuMeasurement, "circumstances", lambda self: {changed: "something else"})
    assert ceiling_measurement.cache_path(device(tmp_path)) != before


def test_a_failure_names_its_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ceilings there is no share of them: an error with the child's own words."""
    monkeypatch.setattr(ceiling_measurement, "TARGET", FAILING)
    with pytest.raises(WorkerError, match="no C\\+\\+ compiler"):
        ceiling_measurement.measured(SERVER, device(tmp_path))


def test_another_checkout_measures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one checkout found undisturbed another one takes, and keeps itself."""
    monkeypatch.setattr(ceiling_measurement, "TARGET", FIXED)
    ceiling_measurement.measured(SERVER, device(tmp_path / "one"))
    monkeypatch.setattr(ceiling_measurement, "TARGET", FAILING)
    assert ceiling_measurement.measured(SERVER, device(tmp_path / "two")) == DEVICE
    assert ceiling_measurement.cache_path(device(tmp_path / "two")).is_file()
    with pytest.raises(WorkerError):
        ceiling_measurement.measured(SERVER, device(tmp_path / "two", "another"))


def test_disturbed_figures_stay_where_they_were_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Low ones would make the results of every checkout look good; a quiet measurement mends that."""
    monkeypatch.setattr(ceiling_measurement, "TARGET", "tests.measure.stand_ins:serve_disturbed")
    found = ceiling_measurement.measured(SERVER, device(tmp_path / "one"))
    assert found.disturbed == ("disturbed: other processes used 40% of the machine's CPU time",)
    monkeypatch.setattr(ceiling_measurement, "TARGET", FAILING)
    with pytest.raises(WorkerError):
        ceiling_measurement.measured(SERVER, device(tmp_path / "two"))
    assert ceiling_measurement.measured(SERVER, device(tmp_path / "one")) == found
    monkeypatch.setattr(ceiling_measurement, "TARGET", FIXED)
    assert ceiling_measurement.measured_again(SERVER, device(tmp_path / "one")).disturbed == ()
    assert ceiling_measurement.measured(SERVER, device(tmp_path / "two")).disturbed == ()


def test_measured_again_is_better_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout that measures again keeps the better of its own, the shared and the new figures."""
    monkeypatch.setattr(ceiling_measurement, "TARGET", "tests.measure.stand_ins:serve_faster")
    ceiling_measurement.measured(SERVER, device(tmp_path / "one"))
    monkeypatch.setattr(ceiling_measurement, "TARGET", FIXED)
    again = ceiling_measurement.measured_again(SERVER, device(tmp_path / "two"))
    assert again.vector_flops == {"float32": 60e9}


def test_measured_afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures that were too high for whatever reason are forgotten, here and for other checkouts."""
    monkeypatch.setattr(ceiling_measurement, "TARGET", "tests.measure.stand_ins:serve_faster")
    ceiling_measurement.measured(SERVER, device(tmp_path / "one"))
    monkeypatch.setattr(ceiling_measurement, "TARGET", FIXED)
    assert ceiling_measurement.measured_afresh(SERVER, device(tmp_path / "one")) == DEVICE
    assert ceiling_measurement.measured(SERVER, device(tmp_path / "one")) == DEVICE
    assert ceiling_measurement.measured(SERVER, device(tmp_path / "two")) == DEVICE


def test_products_when_first_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second dtype adds its product and measures nothing else; one that is absent is not tried again."""
    here = device(tmp_path)
    monkeypatch.setattr(ceiling_measurement, "TARGET", ASKED)
    first = ceiling_measurement.measured(SERVER, here, ("float32",))
    assert first.matrix_flops == {"float32": 200e9}
    both = ceiling_measurement.measured(SERVER, here, ("float32", "int8", "bfloat16"))
    assert both.matrix_flops == {"bfloat16": 200e9, "float32": 200e9}
    assert both.lacks(PRODUCTS) == ("float16", "float64")
    assert both.copy == first.copy and both.launch_seconds == first.launch_seconds
    monkeypatch.setattr(ceiling_measurement, "TARGET", FAILING)
    for known in (("float32",), ("int8",), ("bfloat16", "int8")):
        assert ceiling_measurement.measured(SERVER, here, known) == both
    with pytest.raises(WorkerError):
        ceiling_measurement.measured(SERVER, here, ("float32", "float64"))


@pytest.mark.slow
def test_a_product_alone_on_this_machine(tmp_path: Path) -> None:
    """What is known of the bandwidths stays as it is; the product has a figure and its library."""
    known = msgspec.structs.replace(DEVICE, matrix_flops={}, matrix_library={}, parts={BASE: ()})
    path = ceiling_measurement.cache_path(device(tmp_path))
    write_sealed(path, to_json(known))
    found = ceiling_measurement.measured(SERVER, device(tmp_path), ("float64",))
    assert found.matrix_flops.keys() == found.matrix_library.keys() == {"float64"}
    assert found.matrix_flops["float64"] > 1e9
    assert found.parts.keys() == {BASE, "float64"}
    assert msgspec.structs.replace(found, matrix_flops={}, matrix_library={}, parts={BASE: ()}) == known


def test_checkouts_add_to_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one of them measured first the other one need not, whatever it knows itself."""
    one, two = device(tmp_path / "one"), device(tmp_path / "two")
    monkeypatch.setattr(ceiling_measurement, "TARGET", ASKED)
    ceiling_measurement.measured(SERVER, one, ("float32",))
    ceiling_measurement.measured(SERVER, two, ("float32", "float64"))
    ceiling_measurement.measured(SERVER, one, ("float16",))
    monkeypatch.setattr(ceiling_measurement, "TARGET", FAILING)
    assert ceiling_measurement.measured(SERVER, two, ("float16",)).lacks(PRODUCTS) == ("bfloat16", "int8")
    assert ceiling_measurement.measured(SERVER, one, ("float64",)).lacks(PRODUCTS) == ("bfloat16", "int8")


def test_a_disturbed_product_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it take away what was shared before."""
    one, two = device(tmp_path / "one"), device(tmp_path / "two")
    monkeypatch.setattr(ceiling_measurement, "TARGET", ASKED)
    ceiling_measurement.measured(SERVER, one, ("float32",))
    monkeypatch.setattr(ceiling_measurement, "TARGET", "tests.measure.stand_ins:serve_disturbed")
    found = ceiling_measurement.measured(SERVER, one, ("float64",))
    assert found.parts == {BASE: (), "float32": (), "float64": NOTES} and found.disturbed == NOTES
    monkeypatch.setattr(ceiling_measurement, "TARGET", FAILING)
    assert ceiling_measurement.measured(SERVER, two, ("float32",)).parts == {BASE: (), "float32": ()}
    with pytest.raises(WorkerError):
        ceiling_measurement.measured(SERVER, two, ("float64",))


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_all_that_measures_is_in_the_key(kind: str) -> None:
    """Checkouts whose code differs where figures come from do not share them."""
    graph = grimp.build_graph("pipeline", cache_dir=None)
    measuring = {
        f"pipeline.backends.devices.{kind}.ceilings",
        "pipeline.measure.ceilings.ceiling_measurement",
    }
    reached = measuring.union(*map(graph.find_modules_directly_imported_by, measuring))
    # What carries, keeps and names figures, and makes none.
    carriers = ("pipeline.records.", "pipeline.store.", "pipeline.sandbox.", "pipeline.backends.devices.d")
    measurement = registry.device(kind).measurement()
    paths = (*ceiling_measurement.SOURCES, *measurement.ceiling_sources())
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    assert {name for name in reached if not name.startswith(carriers)} <= modules
