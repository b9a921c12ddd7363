"""The GPU's clock against a driver that writes down what it is asked; no device has run these tests."""

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from pipeline.backends.devices.cuda import timer
from pipeline.backends.devices.cuda.timer import CudaTimer
from pipeline.backends.devices.device import CannotRecord


class Driver:
    """What `torch.cuda` does for the timer: events take the time of a clock that calls move on."""

    def __init__(self) -> None:
        self.now = 0.0  # milliseconds of the device
        self.seen: list[str] = []
        driver = self

        class Event:
            def __init__(self, *, enable_timing: bool) -> None:
                assert enable_timing
                self.at: float | None = None

            def record(self) -> None:
                driver.seen.append("record")
                self.at = driver.now

            def elapsed_time(self, later: "Event") -> float:
                assert self.at is not None and later.at is not None
                return later.at - self.at

        self.Event = Event

    def call(self) -> None:
        """A kernel of 2 ms."""
        self.seen.append("call")
        self.now += 2.0

    def evict(self) -> None:
        """A flush of 5 ms."""
        self.seen.append("evict")
        self.now += 5.0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """In place of the CUDA driver."""
    driver = Driver()
    monkeypatch.setattr(torch.cuda, "Event", driver.Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: driver.seen.append("wait"))
    monkeypatch.setattr(CudaTimer, "_evict", lambda _: driver.evict())
    yield driver


def test_back_to_back(driver: Driver) -> None:
    """One pair of events around all calls, nothing waited for in between."""
    assert CudaTimer(flush_cache=False).batch(driver.call, 3) == pytest.approx(0.006)
    assert driver.seen == ["wait", "record", "call", "call", "call", "record", "wait"]


def test_a_flush_is_not_timed(driver: Driver) -> None:
    """Each call has its own events, after its flush."""
    assert CudaTimer(flush_cache=True).batch(driver.call, 2) == pytest.approx(0.004)
    timed = 2 * ["evict", "record", "call", "record"] + ["wait"]
    assert driver.seen[-len(timed) :] == timed
    driver.seen.clear()
    assert CudaTimer(flush_cache=True).straight(driver.call, 2) == pytest.approx(0.004)
    assert driver.seen == ["wait", "record", "call", "call", "record", "wait"]


def test_flushes_cover_the_launch(driver: Driver) -> None:
    """One that takes the host 20 ms, while a flush takes the device 5 ms."""

    def launch() -> None:
        time.sleep(0.02)
        driver.call()

    CudaTimer(flush_cache=True).batch(launch, 1)
    assert driver.seen[-4:] == ["record", "call", "record", "wait"]
    before = driver.seen[:-4]
    flushes = next(number for number, what in enumerate(reversed(before)) if what != "evict")
    assert flushes >= timer.COVER * 20 / 5


def test_latencies(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is idle for each gap, which is not timed."""
    monkeypatch.setattr(time, "sleep", lambda seconds: driver.seen.append(f"sleep {seconds}"))
    assert CudaTimer(flush_cache=False).latencies(driver.call, (0.1, 0.2)) == pytest.approx((0.002, 0.002))
    one = ["record", "call", "record"]
    assert driver.seen == ["wait", "sleep 0.1", *one, "wait", "sleep 0.2", *one, "wait"]


def test_host_seconds(driver: Driver) -> None:
    """The host's clock, and never more launches than the queue holds."""
    found = CudaTimer(flush_cache=False).host_seconds(driver.call, 1_000_000)
    assert 0 < found < 1e-3
    assert driver.seen.count("call") == timer.MOST_QUEUED
    assert driver.seen[-1] == "wait"


class Graph:
    """Stands for torch.cuda.CUDAGraph."""

    def __init__(self) -> None:
        self.replayed = 0

    def replay(self) -> None:
        """Counted."""
        self.replayed += 1


def recording(monkeypatch: pytest.MonkeyPatch, error: str | None = None) -> None:
    """Streams and graphs that do nothing; `error` is what a recording raises."""
    quiet = SimpleNamespace(wait_stream=lambda _: None)

    class Scope:
        def __init__(self, *_: object) -> None:
            pass

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    class Recording(Scope):
        def __enter__(self) -> None:
            if error:
                raise RuntimeError(error)

    monkeypatch.setattr(torch.cuda, "Stream", lambda: quiet)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: quiet)
    monkeypatch.setattr(torch.cuda, "stream", Scope)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", Recording)


def test_recorded_as_a_graph(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warm-up calls, one that is recorded, and from then on the graph is launched."""
    recording(monkeypatch)
    replay = CudaTimer(flush_cache=False).recorded(driver.call)
    assert driver.seen.count("call") == timer.WARM_UP_CALLS + 1
    replay()
    assert replay.__self__.replayed == 1  # type: ignore[attr-defined]
    assert driver.seen.count("call") == timer.WARM_UP_CALLS + 1


def test_not_to_be_recorded(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that waits for the device is refused with the driver's words."""
    recording(monkeypatch, "operation not permitted when stream is capturing")
    with pytest.raises(CannotRecord, match="cannot be recorded as a CUDA graph: operation not permitted"):
        CudaTimer(flush_cache=False).recorded(driver.call)
