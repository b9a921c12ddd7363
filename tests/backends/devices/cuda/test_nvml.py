"""NVML's functions, called for real in a library that stands for it."""

from pathlib import Path

import pytest

from pipeline.backends.devices.cuda.nvml import NotAvailable, Nvml
from tests.nvml_stand_in import StandIn, load


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Two devices."""
    return StandIn(tmp_path, monkeypatch)


def test_units(library: StandIn):
    """Milliwatts, millijoules and packed bits become plain units; a counter of 64 bits is read whole."""
    with Nvml() as opened:
        device = opened.device()
        assert (device.name(), device.capability()) == ("NVIDIA H200", (9, 0))
        assert (device.clock_mhz("sm"), device.clock_mhz("memory")) == (1755.0, 3201.0)
        assert (device.highest_clock_mhz("sm"), device.highest_clock_mhz("memory")) == (1980.0, 3202.0)
        assert (device.watts(), device.power_limit()) == pytest.approx((312.4, 700.0))
        assert device.joules() == pytest.approx(987_654_321.987)
        assert (device.temperature(), device.performance_state(), device.persistent()) == (41.0, 0, True)


@pytest.mark.parametrize(
    ("mask", "words", "idle"),
    [
        (0, (), False),
        (0x1, (), True),
        (0x24, ("software power cap", "software thermal slowdown"), False),
        (0x49, ("hardware slowdown", "hardware thermal slowdown"), True),
        (0x1000, ("reason 0x1000",), False),
    ],
)
def test_slowdowns_in_words(library: StandIn, mask: int, words: tuple[str, ...], idle: bool):
    """Each bit is a reason; idling is none; a bit of a later driver is not lost."""
    library.tell({"nvmlDeviceGetCurrentClocksEventReasons": mask})
    with Nvml() as opened:
        assert opened.device().slowdowns() == (words, idle)


def test_an_older_driver_calls_slowdowns_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Before 535 the function has another name; what neither name gives says so."""
    library = StandIn(tmp_path, monkeypatch, "-DOLD")
    library.tell({"nvmlDeviceGetCurrentClocksThrottleReasons": 0x4})
    with Nvml() as opened:
        assert opened.device().slowdowns() == (("software power cap",), False)
        with pytest.raises(NotAvailable, match="^nvmlSystemGetDriverVersion: function not found$"):
            opened.driver_version()


def test_why_a_value_is_absent(library: StandIn):
    """The function and the reason in words; a code that is not known as a number."""
    library.tell({"nvmlDeviceGetPowerUsage": None, "nvmlDeviceGetTotalEnergyConsumption": "error 4"})
    library.tell({"nvmlDeviceGetPerformanceState": "error 77"})
    with Nvml() as opened:
        device = opened.device()
        with pytest.raises(NotAvailable, match="^nvmlDeviceGetPowerUsage: not supported$"):
            device.watts()
        with pytest.raises(
            NotAvailable, match="^nvmlDeviceGetTotalEnergyConsumption: insufficient permissions$"
        ):
            device.joules()
        with pytest.raises(NotAvailable, match="^nvmlDeviceGetPerformanceState: nvml error with code 77$"):
            device.performance_state()


def test_other_users_of_the_device(library: StandIn):
    """All processes, however many there are; none is an empty list."""
    with Nvml() as opened:
        library.tell({"processes": "4711 4712 " + " ".join(map(str, range(1, 40)))})
        assert opened.device().processes() == (4711, 4712, *range(1, 40))
        library.tell({"processes": "0"})
        assert opened.device().processes() == (0,)
        library.tell({"processes": " "})
        assert opened.device().processes() == ()


def test_the_device_of_this_process(library: StandIn, monkeypatch: pytest.MonkeyPatch):
    """The first visible one, or the one that torch names, with or without its prefix."""
    with Nvml() as opened:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        assert opened.device().name() == "NVIDIA RTX"
        assert opened.device("11111111-2222-3333-4444-555555555555").name() == "NVIDIA H200"
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1")
        assert opened.device().sliced
        with pytest.raises(NotAvailable, match="^no device GPU-7 among those that the driver shows$"):
            opened.device("7")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        with pytest.raises(NotAvailable, match="^no NVIDIA device is visible to this process$"):
            opened.device()


def test_no_library(monkeypatch: pytest.MonkeyPatch):
    """Most machines; the text names the file."""
    load(None, monkeypatch)
    with pytest.raises(NotAvailable, match=r"^no NVIDIA driver: libnvidia-ml\.so\.1 is not here$"):
        Nvml()


def test_a_library_without_its_driver(library: StandIn):
    """In a container that was given the file but no device."""
    library.tell({"nvmlInit": 9})
    with pytest.raises(NotAvailable, match="^nvmlInit: driver not loaded$"):
        Nvml()
