"""Energy per call from counters that advance in steps, wrap around, stand still, or may not be read."""

from pathlib import Path

import pytest

from pipeline.backends.devices.cpu import conditions
from pipeline.backends.devices.cpu.conditions import RaplMeter
from pipeline.backends.devices.cuda.conditions import NvmlMeter
from pipeline.backends.devices.cuda.nvml import Nvml
from pipeline.backends.devices.device import NotAvailable
from pipeline.backends.devices.device_registry import device
from pipeline.measure.hosting.call_costs import energy_of, metered
from pipeline.records.results.profiled import Energy, Unmeasured
from tests.nvml_stand_in import StandIn, load


class Draw:
    """Draws 100 W, tells its energy every 70 ms; a batch of 5 calls takes 10 ms."""

    source = "made up"

    def __init__(self, step: float = 0.07) -> None:
        self.now = 3.0
        self._step = step

    def joules(self) -> float:
        """As of the last update."""
        return 100.0 * (self.now // self._step) * self._step if self._step else 7.0

    def batch(self) -> int:
        """Time passes."""
        self.now += 0.01
        return 5


def test_energy_between_two_steps_of_the_counter():
    """The right figures although the counter is always stale: 100 W and 2 ms a call are 0.2 J."""
    drawn = Draw()
    found = metered(drawn, drawn.batch, seconds=0.5, clock=lambda: drawn.now)
    assert isinstance(found, Energy)
    assert found.joules == pytest.approx(0.2, rel=0.02)  # a step is seen up to 10 ms late, of 0.5 s
    assert found.watts == pytest.approx(100, rel=0.02)
    assert 0.5 <= found.seconds < 0.6
    assert found.calls == pytest.approx(found.seconds / 0.002)
    assert found.updates == pytest.approx(found.seconds / 0.07, abs=1)


def test_idle_time_before_the_batches_does_not_count():
    """What the counter holds back when the first batch starts belongs to the time before."""
    drawn = Draw()
    drawn.now += 0.06  # the step that is seen first has mostly been idle
    found = metered(drawn, drawn.batch, seconds=0.5, clock=lambda: drawn.now)
    assert isinstance(found, Energy)
    assert found.joules == pytest.approx(0.2, rel=0.02)


def test_a_counter_that_stands_still():
    """It is given up after four times the wished seconds, and the text says what was seen."""
    drawn = Draw(step=0.0)
    found = metered(drawn, drawn.batch, seconds=0.5, clock=lambda: drawn.now)
    reason = "made up: got 0 steps of the counter in 2 s, expected 4"
    assert found == Unmeasured(quantity="energy", reason=reason)
    assert drawn.now == pytest.approx(5.0, abs=0.03)


def domain(powercap: Path, number: str, name: str, microjoules: int, most: int = 1_000_000) -> Path:
    """One domain of RAPL."""
    folder = powercap / number
    folder.mkdir(parents=True, exist_ok=True)
    for file, value in (("name", name), ("energy_uj", microjoules), ("max_energy_range_uj", most)):
        (folder / file).write_text(f"{value}\n")
    return folder


def test_packages_and_memory_are_added(tmp_path: Path):
    """Cores are within their package, psys is the whole board, mmio repeats: none is counted twice."""
    counted = [
        domain(tmp_path, "intel-rapl:0", "package-0", 100),
        domain(tmp_path, "intel-rapl:0:1", "dram", 200),
        domain(tmp_path, "intel-rapl:1", "package-1", 300),
    ]
    others = [("intel-rapl:0:0", "core"), ("intel-rapl:2", "psys"), ("intel-rapl-mmio:0", "package-0")]
    for number, name in others:
        domain(tmp_path, number, name, 0)
    meter = RaplMeter(tmp_path)
    assert (meter.source, meter.joules()) == ("rapl:package+dram", 0.0)
    for folder in counted:
        (folder / "energy_uj").write_text("1100\n")
    for number, _ in others:
        (tmp_path / number / "energy_uj").write_text("777777\n")
    assert meter.joules() == pytest.approx((1000 + 900 + 800) * 1e-6)


def test_a_counter_that_wraps_around(tmp_path: Path):
    """More than once between the first and the last reading."""
    folder = domain(tmp_path, "intel-rapl:0", "package-0", 900_000)
    meter = RaplMeter(tmp_path)
    total = 0.0
    for value in (999_999, 100_000, 50_000):
        (folder / "energy_uj").write_text(str(value))
        now = meter.joules()
        assert now >= total
        total = now
    assert total == pytest.approx((100_000 + 100_000 + 950_000) * 1e-6, abs=2e-6)


def test_a_counter_that_only_root_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Linux's default since 2020: the text says what to do."""
    folder = domain(tmp_path, "intel-rapl:0", "package-0", 0)
    read_text = Path.read_text

    def refuse(path: Path, *arguments: str, **keywords: str) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", str(path))
        return read_text(path, *arguments, **keywords)

    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(conditions, "POWERCAP", tmp_path)
    path = folder / "energy_uj"
    reason = f"{path} may not be read: sudo chmod a+r {path}, until the next start"
    assert energy_of(device("cpu").measurement(), lambda: 1) == Unmeasured(quantity="energy", reason=reason)


def test_no_counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No folder, or one without a package; no driver; a GPU of AMD."""
    monkeypatch.setattr(conditions, "POWERCAP", tmp_path / "none")
    load(None, monkeypatch)
    with pytest.raises(
        NotAvailable, match="none is not here: a virtual machine, or no module intel_rapl_msr$"
    ):
        RaplMeter()
    domain(tmp_path, "intel-rapl:0", "psys", 0)
    with pytest.raises(NotAvailable, match="has no domain intel-rapl:.* of a package$"):
        RaplMeter(tmp_path)
    measurements = {kind: device(kind).measurement() for kind in ("cpu", "cuda", "hip")}
    reasons = {kind: energy_of(each, lambda: 1).reason for kind, each in measurements.items()}
    assert reasons["cpu"].endswith("a virtual machine, or no module intel_rapl_msr")
    assert reasons["cuda"] == "no NVIDIA driver: libnvidia-ml.so.1 is not here"
    assert reasons["hip"] == "energy of AMD GPUs is not read"


def test_the_counter_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Through the library: 50 mJ more with every second batch of 3 calls."""
    library = StandIn(tmp_path, monkeypatch)
    library.tell({"nvmlDeviceGetTotalEnergyConsumption": 10_000})
    batches = []

    def batch() -> int:
        batches.append(1)
        library.tell({"nvmlDeviceGetTotalEnergyConsumption": 10_000 + 50 * (len(batches) // 2)})
        return 3

    found = energy_of(device("cuda").measurement(), batch, seconds=0.2)
    assert isinstance(found, Energy)
    assert (found.source, found.joules) == ("nvml", pytest.approx(0.05 / 6))


def test_a_gpu_without_a_counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Devices before Volta; and a slice, whose neighbours' energy would be counted."""
    library = StandIn(tmp_path, monkeypatch)
    library.tell({"nvmlDeviceGetTotalEnergyConsumption": None})
    reason = "nvmlDeviceGetTotalEnergyConsumption: not supported"
    assert energy_of(device("cuda").measurement(), lambda: 1) == Unmeasured(quantity="energy", reason=reason)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1")
    with Nvml() as nvml, pytest.raises(NotAvailable, match=r"^a slice of a device \(MIG\)"):
        NvmlMeter(nvml.device())
