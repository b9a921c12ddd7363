"""Clocks: every timer of a device that is here keeps to the interface, and tells the truth."""

import time
from pathlib import Path

import pytest
import torch

from pipeline.backends.devices.cpu.processor import usable_cores
from pipeline.backends.devices.cpu.timer import CpuTimer
from pipeline.backends.devices.cuda.timer import CudaTimer
from pipeline.backends.devices.device_registry import device
from tests.measure.clean import call

pytestmark = pytest.mark.alone

NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
CUDA = pytest.param("cuda", marks=[pytest.mark.gpu, NO_CUDA])


@pytest.mark.parametrize("kind", ["cpu", CUDA])
@pytest.mark.parametrize("flush", [False, True])
def test_more_work_takes_longer(kind: str, flush: bool, tmp_path: Path) -> None:
    """Ten times the calls take several times as long, with and without a flushed cache."""
    few, many = call("tests.measure.stand_ins:few_and_many", tmp_path / "log.txt", kind, flush)
    assert many > 3 * few > 0


@pytest.mark.parametrize("kind", ["cpu", CUDA])
def test_recorded_calls_are_all_made(kind: str, tmp_path: Path) -> None:
    """As many as are asked for."""
    asked, made = call("tests.measure.stand_ins:recorded", tmp_path / "log.txt", kind)
    assert made == asked > 0


def test_the_right_timer() -> None:
    """AMD's GPUs are driven through the same interface of torch as NVIDIA's."""
    assert isinstance(device("cpu").measurement().timer(flush_cache=False), CpuTimer)
    assert isinstance(device("cuda").measurement().timer(flush_cache=False), CudaTimer)
    assert isinstance(device("hip").measurement().timer(flush_cache=False), CudaTimer)


def test_clock() -> None:
    """A call that sleeps 10 ms takes 10 ms."""
    assert CpuTimer(flush_cache=False).batch(lambda: time.sleep(0.01), 3) == pytest.approx(0.03, rel=0.5)


def test_a_flush_is_not_timed() -> None:
    """Writing twice the last-level cache takes milliseconds; an empty call does not."""
    timer = CpuTimer(flush_cache=True)
    timer.batch(lambda: None, 1)
    start = time.perf_counter()
    timed = timer.batch(lambda: None, 3)
    assert timed < 0.1 * (time.perf_counter() - start)


def test_straight_calls_flush_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """By these a clock is checked: nothing but calls is between its two readings."""
    flushed: list[CpuTimer] = []

    def evict(timer: CpuTimer) -> None:
        flushed.append(timer)

    monkeypatch.setattr(CpuTimer, "_evict", evict)
    timer = CpuTimer(flush_cache=True)
    assert timer.straight(lambda: time.sleep(0.005), 4) >= 0.02
    assert flushed == []
    timer.batch(lambda: None, 4)
    assert len(flushed) == 4


def test_prepared_process(tmp_path: Path) -> None:
    """One pinned thread per core, freed memory used again, and all of it told."""
    found = call("tests.measure.stand_ins:prepared", tmp_path / "log.txt")
    cores = usable_cores()
    assert found["pool"] == len(cores)
    if len(cores) > 1:
        assert all(len(mask) == 1 for mask in found["masks"])
        assert {mask[0] for mask in found["masks"]} == set(cores)
    assert found["faults"] < 1000  # of 1024 for each of ten calls
    assert found["torch"] == torch.__version__
    assert found["timer"] == "perf_counter_ns"


def test_latencies_leave_gaps_out() -> None:
    """Each call has its own time, without the idle seconds before it."""
    start = time.perf_counter()
    found = CpuTimer(flush_cache=False).latencies(lambda: time.sleep(0.01), (0.03, 0.05))
    assert time.perf_counter() - start > 0.1
    assert found == pytest.approx((0.01, 0.01), rel=0.5)
