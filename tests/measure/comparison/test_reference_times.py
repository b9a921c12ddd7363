"""The first time of a baseline is kept, and later times of the problem refer to it."""

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from pipeline.measure.comparison.reference_times import ReferenceTimes, drift_note
from pipeline.records.results.profiled import Comparison, ReferenceTime
from tests.execution.gym.made_up import profiled


def task(device: str = "this one", mode: str = "offline") -> SimpleNamespace:
    """What the reference belongs to."""
    return SimpleNamespace(
        identity="softmax",
        kind="cpu",
        device=device,
        settings=SimpleNamespace(mode=mode, idle_seconds=0.0, flush_cache=False, cuda_graph="never"),
    )


def compared(name: str, seconds: float) -> Comparison:
    """A baseline that takes so long."""
    (entry,) = profiled(low=1.9, value=2.0, high=2.1, seconds=1e-5).comparisons
    median = entry.timing.median.scaled(seconds / entry.timing.median.value)
    timing = msgspec.structs.replace(entry.timing, median=median)
    return msgspec.structs.replace(entry, baseline=name, timing=timing)


def test_the_first_time_is_kept(tmp_path: Path) -> None:
    """Also for a later process; another device and another mode have their own."""
    first = ReferenceTimes(tmp_path, task()).of([compared("eager", 1e-3)])
    assert first == ReferenceTime(baseline="eager", seconds=1e-3)
    assert ReferenceTimes(tmp_path, task()).of([compared("eager", 5e-3)]) == first
    for other in (task(device="another"), task(mode="server")):
        found = ReferenceTimes(tmp_path, other).of([compared("eager", 5e-3)])
        assert found is not None and found.seconds == 5e-3


def test_a_baseline_that_comes_later_is_reduced_to_the_same_state(tmp_path: Path) -> None:
    """Its reference is what it would have taken then, so both baselines lead to one time."""
    times = ReferenceTimes(tmp_path, task())
    times.of([compared("eager", 1e-3)])
    times.of([compared("eager", 2e-3), compared("compile", 4e-3)])
    found = times.of([compared("compile", 4e-3)])
    assert found is not None and found.seconds == pytest.approx(2e-3)


def test_without_a_baseline_there_is_no_reference(tmp_path: Path) -> None:
    """Nothing tells the state of the device then."""
    assert ReferenceTimes(tmp_path, task()).of([]) is None


def test_a_large_drift_is_noted() -> None:
    """A small one is not: it is in the column `drift` all the same."""
    reference = ReferenceTime(baseline="eager", seconds=1e-3)
    assert drift_note(reference, [compared("eager", 1.05e-3)]) == ()
    (note,) = drift_note(reference, [compared("eager", 1.5e-3)])
    assert "1.50 times" in note
