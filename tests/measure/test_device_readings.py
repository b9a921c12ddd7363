"""Readings of processors and GPUs, from files and a library as they are on other machines."""

from pathlib import Path

import pytest

from pipeline.backends.devices import disturbance
from pipeline.backends.devices.cpu import conditions
from pipeline.backends.devices.cpu.conditions import LinuxSource
from pipeline.backends.devices.cuda.conditions import NvmlSource
from pipeline.backends.devices.disturbance import CpuLoad
from pipeline.measure import device_readings
from tests.nvml_stand_in import StandIn


def write(root: Path, files: dict[str, object]) -> None:
    """Files with one value each."""
    for name, value in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders of a machine that tells nothing so far."""
    monkeypatch.setattr(conditions, "CPUS", tmp_path / "cpu")
    monkeypatch.setattr(conditions, "HWMON", tmp_path / "hwmon")
    monkeypatch.setattr(conditions, "THERMAL", tmp_path / "thermal")
    monkeypatch.setattr(conditions, "POWERCAP", tmp_path / "powercap")
    return tmp_path


def test_frequency_of_the_cores_in_use(machine: Path):
    """The slowest and the fastest of them, from kHz; another core's does not count."""
    for core, khz in enumerate((3_400_000, 2_900_000, 800_000)):
        write(machine, {f"cpu/cpu{core}/cpufreq/scaling_cur_freq": khz})
    found = LinuxSource((0, 1)).read()
    assert (found.clock_mhz_low, found.clock_mhz_high) == (2900, 3400)


def test_hottest_sensor_of_the_processor(machine: Path):
    """From millidegrees; a disk's sensor is none of the processor's, nor is a zone where a sensor is."""
    write(machine, {"hwmon/hwmon0/name": "nvme", "hwmon/hwmon0/temp1_input": 90_000})
    write(machine, {"thermal/thermal_zone0/type": "x86_pkg_temp", "thermal/thermal_zone0/temp": 61_000})
    write(machine, {"thermal/thermal_zone1/type": "iwlwifi", "thermal/thermal_zone1/temp": 99_000})
    assert LinuxSource((0,)).read().temperature_celsius == 61
    write(machine, {"hwmon/hwmon1/name": "k10temp", "hwmon/hwmon1/temp1_input": 55_500})
    write(machine, {"hwmon/hwmon1/temp3_input": 57_250})
    assert LinuxSource((0,)).read().temperature_celsius == 57.25


def test_throttling_between_two_readings(machine: Path):
    """Counters run since the machine started: what counts is that they rise."""
    folder = "cpu/cpu0/thermal_throttle"
    write(machine, {f"{folder}/core_throttle_count": 17, f"{folder}/package_power_limit_count": 3})
    source = LinuxSource((0,))
    assert source.read().throttled == ()
    write(machine, {f"{folder}/core_throttle_count": 18})
    assert source.read().throttled == ("thermal throttling of a core",)
    assert source.read().throttled == ()
    write(machine, {f"{folder}/package_power_limit_count": 9})
    assert source.read().throttled == ("power limit of the package",)


def test_steal_since_the_last_reading(machine: Path, monkeypatch: pytest.MonkeyPatch):
    """A reading too soon for the kernel's clock leaves the time to the next one."""
    loads = [CpuLoad(busy=0, stolen=0, total=0), CpuLoad(busy=0, stolen=0.01, total=0.02)]
    loads += [CpuLoad(busy=0, stolen=0.05, total=0.2), CpuLoad(busy=0, stolen=0.05, total=0.4)]
    monkeypatch.setattr(disturbance, "load", lambda: loads.pop(0))
    source = LinuxSource((0,))
    assert source.read().stolen is None
    assert source.read().stolen == pytest.approx(0.25)
    assert source.read().stolen == 0.0


def test_power_of_the_packages(machine: Path, monkeypatch: pytest.MonkeyPatch):
    """Energy since the last reading over the time."""
    moments = iter((10.0, 12.0))
    monkeypatch.setattr(conditions.time, "monotonic", lambda: next(moments))
    package = "powercap/intel-rapl:0"
    write(machine, {f"{package}/name": "package-0", f"{package}/max_energy_range_uj": 262_143_328_850})
    write(machine, {f"{package}/energy_uj": 1_000_000})
    source = LinuxSource((0,))
    write(machine, {f"{package}/energy_uj": 91_000_000})
    assert source.read().watts == pytest.approx(45.0)


def test_a_machine_that_tells_nothing(machine: Path):
    """Every quantity is absent, none is 0, and people read why."""
    source = LinuxSource((0,))
    found = source.read()
    assert (found.clock_mhz_low, found.temperature_celsius, found.watts) == (None, None, None)
    lines = source.lines()
    assert lines["clock"] == f"absent: no {machine}/cpu/cpu*/cpufreq: virtual machines rarely have it"
    assert lines["temperature"].startswith("absent: no sensor of coretemp, k10temp, zenpower, ")
    assert lines["power"] == (
        f"absent: {machine}/powercap is not here: a virtual machine, or no module intel_rapl_msr"
    )
    assert lines["slowed by"].startswith(f"absent: no {machine}/cpu/cpu*/thermal_throttle")


def test_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All that the driver tells, in one reading."""
    library = StandIn(tmp_path, monkeypatch)
    library.tell({"nvmlDeviceGetCurrentClocksEventReasons": 0x4, "nvmlDeviceGetPerformanceState": 2})
    found = NvmlSource().read()
    assert (found.clock_mhz_low, found.clock_mhz_high, found.memory_clock_mhz_low) == (1755, 1755, 3201)
    assert (found.temperature_celsius, found.watts) == (41, pytest.approx(312.4))
    assert (found.throttled, found.performance_states) == (("software power cap",), (2,))


def test_a_gpu_that_idles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It lowers its clock by itself: no clock of a measurement, no throttling."""
    library = StandIn(tmp_path, monkeypatch)
    library.tell({"sm_clock": 345, "nvmlDeviceGetCurrentClocksEventReasons": 0x1})
    found = NvmlSource().read()
    assert (found.clock_mhz_low, found.throttled, found.temperature_celsius) == (None, (), 41)


def test_a_gpu_that_lacks_a_sensor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The rest is read; people are told what is not."""
    library = StandIn(tmp_path, monkeypatch)
    library.tell({"nvmlDeviceGetPowerUsage": None, "nvmlDeviceGetCurrentClocksEventReasons": None})
    library.tell({"nvmlDeviceGetCurrentClocksThrottleReasons": None})
    source = NvmlSource()
    assert (source.read().watts, source.read().clock_mhz_low) == (None, 1755)
    lines = source.lines()
    assert lines["clock"] == "1755 of 1980 MHz"
    assert lines["power"] == "absent: nvmlDeviceGetPowerUsage: not supported"
    assert lines["other processes"] == "4711"


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """One line for each quantity of each kind that was asked for."""
    StandIn(tmp_path, monkeypatch)
    assert device_readings.main(["cuda"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("cuda ") for line in lines)
    assert "cuda temperature         41 °C" in lines
    assert device_readings.main(["cpu"]) == 0
    assert capsys.readouterr().out.startswith("cpu  clock ")
    with pytest.raises(SystemExit):
        device_readings.main(["gpu"])
    assert "kind: got gpu, expected one of cpu, cuda, hip" in capsys.readouterr().err
