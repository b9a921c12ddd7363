"""The GPU's clock against a driver that writes down what it is asked."""

import contextlib
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
        self.milliseconds = 2.0
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
        """A kernel."""
        self.seen.append("call")
        self.now += self.milliseconds

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


GRAPH = 0.0045  # milliseconds: no graph takes less


def recording(driver: Driver, monkeypatch: pytest.MonkeyPatch, error: str | None = None) -> None:
    """Streams that do nothing, and graphs of the calls that are made meanwhile; `error`: what that raises."""
    quiet = SimpleNamespace(wait_stream=lambda _: None)

    class Graph:
        milliseconds = 0.0

        def replay(self) -> None:
            driver.now += max(self.milliseconds, GRAPH)

    @contextlib.contextmanager
    def record(graph: Graph) -> Iterator[None]:
        if error:
            raise RuntimeError(error)
        before = driver.now
        yield
        graph.milliseconds, driver.now = driver.now - before, before

    monkeypatch.setattr(torch.cuda, "Stream", lambda: quiet)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: quiet)
    monkeypatch.setattr(torch.cuda, "stream", contextlib.nullcontext)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", record)


@pytest.mark.parametrize("milliseconds", [0.001, 0.03, 2.0])
def test_recorded_as_a_graph(milliseconds: float, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call has its own time, also if it is shorter than a graph takes to start, and is not made again."""
    recording(driver, monkeypatch)
    driver.milliseconds = milliseconds
    clock = CudaTimer(flush_cache=False)
    replay = clock.recorded(driver.call)
    made = driver.seen.count("call")
    calls = 4 * replay.calls
    assert clock.batch(replay, calls) == pytest.approx(1e-3 * calls * milliseconds)
    assert clock.batch(replay, 1) == pytest.approx(1e-3 * max(milliseconds, GRAPH))
    assert clock.batch(replay, replay.calls + 1) >= 0.999e-3 * (replay.calls + 1) * milliseconds
    assert driver.seen.count("call") == made
    cold = CudaTimer(flush_cache=True)
    assert cold.batch(replay, 3) == pytest.approx(3e-3 * max(milliseconds, GRAPH))
    assert cold.latencies(replay, (0.0, 0.0)) == pytest.approx(2 * [1e-3 * max(milliseconds, GRAPH)])


def test_not_to_be_recorded(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that waits for the device is refused with the driver's words."""
    recording(driver, monkeypatch, "operation not permitted when stream is capturing")
    with pytest.raises(CannotRecord, match="cannot be recorded as a CUDA graph: operation not permitted"):
        CudaTimer(flush_cache=False).recorded(driver.call)
