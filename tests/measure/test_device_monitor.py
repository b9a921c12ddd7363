"""What happened to the device while batches ran: looks, what they disturb, and what a reader is told."""

import time
from pathlib import Path

import pytest

from pipeline.backends.devices.device import NotAvailable
from pipeline.measure.device_monitor import PERIOD, Monitor, disturbances, merged, notes
from pipeline.records.results.profiled import Conditions, Unmeasured
from tests.nvml_stand_in import StandIn, load


class Recorded:
    """A source that gives back what a test says."""

    beside = False

    def __init__(self, *readings: Conditions) -> None:
        self._readings = list(readings)
        self.closed = False

    def read(self) -> Conditions:
        """The next one."""
        return self._readings.pop(0)

    def lines(self) -> dict[str, str]:
        """Nothing for people."""
        return {}

    def close(self) -> None:
        """Remember it."""
        self.closed = True


def at(clock: float | None, *reasons: str, stolen: float | None = None, watts: float | None = None):
    """One reading."""
    return Conditions(
        clock_mhz_low=clock, clock_mhz_high=clock, throttled=reasons, stolen=stolen, watts=watts, samples=1
    )


def test_a_processor_is_read_at_a_bounded_rate():
    """However many batches end in a period, there is one reading; the other looks are empty."""
    now = iter([0.0, 0.01, 0.02, 0.06, 0.07])
    source = Recorded(at(3000), at(2900))
    with Monitor(source, period=0.05, clock=lambda: next(now)) as monitor:
        looks = [monitor.look() for _ in range(5)]
    assert [look.samples for look in looks] == [1, 0, 0, 1, 0]
    assert [look.clock_mhz_low for look in looks] == [3000, None, None, 2900, None]
    assert source.closed


def test_a_gpu_is_read_beside_the_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A thread reads while nobody looks; a look gives what came since the one before, extremes kept."""
    library = StandIn(tmp_path, monkeypatch)
    with Monitor.of("cuda") as monitor:
        began = time.monotonic()
        assert monitor.absent is None
        time.sleep(0.2)
        library.tell({"sm_clock": 1200, "nvmlDeviceGetCurrentClocksEventReasons": 0x40})
        time.sleep(0.2)
        library.tell({"sm_clock": 1755, "nvmlDeviceGetCurrentClocksEventReasons": 0})
        time.sleep(0.2)
        first = monitor.look()
        most = (time.monotonic() - began) / PERIOD + 2
        time.sleep(0.2)
        second = monitor.look()
    assert 6 <= first.samples <= most
    assert (first.clock_mhz_low, first.clock_mhz_high) == (1200, 1755)
    assert first.throttled == ("hardware thermal slowdown",)
    assert first.watts == pytest.approx(312.4)
    assert (second.clock_mhz_low, second.throttled) == (1755, ())


def test_what_cannot_be_read_is_absent_with_its_reason(monkeypatch: pytest.MonkeyPatch):
    """Batches go on without a monitor; the result says why there are no conditions."""
    load(None, monkeypatch)
    with Monitor.of("cuda") as monitor:
        assert monitor.look() == Conditions()
    reason = "no NVIDIA driver: libnvidia-ml.so.1 is not here"
    assert monitor.absent == Unmeasured(quantity="conditions", reason=reason)
    assert Monitor.of("hip").absent == Unmeasured(
        quantity="conditions", reason="conditions of AMD GPUs are not read"
    )


def test_nothing_is_started_that_does_not_end():
    """The thread of a GPU's monitor ends with it, also where the batches raise."""
    import threading

    source = Recorded(*[at(1755)] * 100)
    source.beside = True
    with pytest.raises(RuntimeError), Monitor(source, period=0.01):
        raise RuntimeError
    assert "monitor" not in {thread.name for thread in threading.enumerate()}


def test_merged_looks():
    """Extremes of clocks, means of power by readings, reasons once, in the order in which they appeared."""
    one = Conditions(clock_mhz_low=1700, clock_mhz_high=1900, watts=100, throttled=("a", "b"), samples=3)
    other = Conditions(temperature_celsius=50, watts=200, throttled=("b", "c"), samples=1)
    found = merged([one, other, Conditions()])
    assert found == Conditions(
        clock_mhz_low=1700,
        clock_mhz_high=1900,
        temperature_celsius=50,
        watts=125,
        throttled=("a", "b", "c"),
        samples=4,
    )
    assert merged([]) == Conditions()


def test_a_batch_at_a_slow_clock_is_disturbed():
    """Beyond the drop that is allowed, against the usual clock; the text gives both."""
    looks = [at(2000), at(1990), at(1500), at(1950), at(None), Conditions()]
    assert disturbances(looks) == (
        None,
        None,
        "slow clock: 1500 MHz, 24% below the usual 1970 MHz",
        None,
        None,
        None,
    )
    assert disturbances(looks, drop=0.3) == (None,) * 6


def test_a_throttled_batch_is_disturbed():
    """Whatever its clock."""
    looks = [at(2000), at(2000, "hardware thermal slowdown"), at(2000), at(2000)]
    assert disturbances(looks)[1] == "throttled: hardware thermal slowdown"
    assert notes(looks) == ("throttled: hardware thermal slowdown in 1 of 4 looks at the device",)


def test_what_lasts_is_no_disturbance_but_is_told():
    """A kernel that always runs into the power cap would be repeated for ever; its result says it."""
    looks = [at(1500, "software power cap")] * 3 + [at(1500)]
    assert disturbances(looks) == (None,) * 4
    assert notes(looks) == ("throttled: software power cap in 3 of 4 looks at the device",)


def test_stolen_time():
    """A host that takes the processor away disturbs the batch before the look."""
    looks = [at(None, stolen=0.0), at(None, stolen=0.4)]
    assert disturbances(looks) == (None, "the host took 40% of the machine's CPU time")
    assert notes(looks) == ("disturbed: the host took 20% of the machine's CPU time",)


def test_an_unsteady_clock_is_told():
    """Where it moved beyond the drop at all."""
    assert notes([at(3000), at(2900)]) == ()
    assert notes([at(3000), at(2000)]) == ("unsteady: the clock was between 2000 and 3000 MHz",)


def test_this_machine():
    """A look at this processor takes far less than a batch, and claims nothing beyond what Linux told."""
    with Monitor.of("cpu") as monitor:
        assert monitor.absent is None
        monitor.look()
        time.sleep(0.06)
        start = time.perf_counter()
        look = monitor.look()
        assert time.perf_counter() - start < 0.02
    assert look.samples == 1
    if not Path("/sys/devices/system/cpu/cpu0/cpufreq").exists():
        assert look.clock_mhz_low is None


def test_not_told_is_what_a_source_raises():
    """The monitor takes it in place of a source."""
    assert Monitor(NotAvailable("why")).absent == Unmeasured(quantity="conditions", reason="why")
