"""Everything that a measuring child finds of warm calls, on this machine and with other counters."""

from pathlib import Path

import pytest

from pipeline.backends.devices.cpu import conditions
from pipeline.backends.devices.cuda.measuring import CudaMeasurement
from pipeline.backends.devices.device_registry import device
from pipeline.measure.hosting import call_costs
from pipeline.measure.hosting.call_costs import Examined, examine
from pipeline.records.record import from_plain, to_json
from pipeline.records.results.profiled import Energy, Peak, Unmeasured


def test_on_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Memory of a single call, energy and counters of whole batches; what is absent has its reason."""
    monkeypatch.setattr(conditions, "POWERCAP", tmp_path / "none")
    asked: list[int] = []
    found = examine(asked.append, 50, device("cpu").measurement(), 0.1)
    assert asked[0] == 1
    assert set(asked[1:]) <= {50}
    assert (found.energy, found.unmeasured[0].quantity) == (None, "energy")
    assert found.unmeasured[0].reason.startswith(f"{tmp_path}/none is not here")
    assert (found.counters is None) == any(absent.quantity == "counters" for absent in found.unmeasured)


def test_energy_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not asked for is not absent."""
    monkeypatch.setattr(conditions, "POWERCAP", tmp_path / "none")
    found = examine(lambda calls: None, 5, device("cpu").measurement(), None)
    assert "energy" not in {absent.quantity for absent in found.unmeasured}


def test_on_a_gpu(monkeypatch: pytest.MonkeyPatch):
    """Its counters come from the profiler, in a process of its own."""
    drawn = Energy(joules=1.0, watts=2.0, seconds=0.5, calls=10, updates=5, source="nvml")
    monkeypatch.setattr(CudaMeasurement, "peak_memory", lambda _, call: (call(), Peak(device_bytes=7))[1])
    monkeypatch.setattr(call_costs, "energy_of", lambda kind, batch, seconds: drawn if batch() == 5 else None)
    calls: list[int] = []
    found = examine(calls.append, 5, device("cuda").measurement(), 0.5)
    assert found == Examined(peak=Peak(device_bytes=7), energy=drawn)
    assert calls == [1, 5]


def test_it_travels_between_processes():
    """Plain values, told apart from the other answers of a measuring child by its tag."""
    import msgspec

    absent = Unmeasured(quantity="energy", reason="no")
    found = Examined(peak=Peak(host_bytes=1), unmeasured=(absent,))
    plain = msgspec.json.decode(to_json(found))
    assert plain["type"] == "examined"
    assert from_plain(plain, Examined) == found
