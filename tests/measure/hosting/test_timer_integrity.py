"""What a candidate is timed with is what it was; what it may well do is not held against it."""

import builtins
import time
from multiprocessing.connection import _ConnectionBase

import msgspec
import pytest

from pipeline.backends.devices.cpu import timer as cpu_timer
from pipeline.backends.devices.cpu.timer import CpuTimer
from pipeline.measure.hosting.candidate_integrity import TimerIntegrity

REPLACED = {
    "time.perf_counter_ns": (time, "perf_counter_ns"),
    "builtins.range": (builtins, "range"),
    "multiprocessing.connection._ConnectionBase.recv_bytes": (_ConnectionBase, "recv_bytes"),
    "msgspec.msgpack.encode": (msgspec.msgpack, "encode"),
    "pipeline.backends.devices.cpu.timer.CpuTimer.straight": (CpuTimer, "straight"),
    "pipeline.backends.devices.cpu.timer.range": (cpu_timer, "range"),
}


@pytest.mark.parametrize("name", REPLACED)
def test_what_is_replaced_is_named(name: str) -> None:
    """Functions, methods, and names that hide Python's own."""
    owner, attribute = REPLACED[name]
    integrity = TimerIntegrity(CpuTimer(flush_cache=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, attribute, object(), raising=False)
        found = integrity.changes()
    assert f"{name} was replaced" in found
    assert integrity.changes() == ()


def test_an_attribute_that_hides_a_method() -> None:
    """Of the timer itself, which its class does not show."""
    timer = CpuTimer(flush_cache=False)
    integrity = TimerIntegrity(timer)
    assert integrity.changes() == ()
    timer.straight = timer.batch  # type: ignore[method-assign]
    assert integrity.changes() == ("CpuTimer.straight was replaced",)


@pytest.mark.parametrize("name", ["perf_counter_ns", "perf_counter", "sleep"])
def test_the_clock_right_before_a_batch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is bound when a batch begins gives its time at its end too."""
    integrity = TimerIntegrity(CpuTimer(flush_cache=False))
    assert not integrity.clock_changed()
    monkeypatch.setattr(time, name, lambda: 0)
    assert integrity.clock_changed()


def test_calls_change_nothing() -> None:
    """The timer's own work is no change."""
    timer = CpuTimer(flush_cache=True)
    integrity = TimerIntegrity(timer)
    timer.batch(lambda: None, 1)
    timer.straight(lambda: None, 3)
    timer.latencies(lambda: None, (0.001,))
    assert integrity.changes() == ()
