"""Rounds of the processor's ceilings: how many, and that the best of them counts."""

import itertools
from types import SimpleNamespace

import msgspec
import pytest

from pipeline.measure import ceilings_cpu as module
from pipeline.measure.device_ceilings import DeviceCeilings
from tests.measure.stand_ins import DEVICE


@pytest.mark.parametrize(
    ("seconds", "gain", "rounds"),
    [(1.2, 0.5, 5), (1.2, 0.0, 3), (4.0, 0.5, 3), (2.5, 0.5, 3), (0.1, 0.0, 11), (0.1, 0.5, 11)],
    ids=["at most", "at least", "time is over", "no time left for a fourth", "short", "short and improving"],
)
def test_rounds(seconds: float, gain: float, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three at least and for a second and a half, then five at most, while time is left and one improves."""
    clock = [100.0]

    def sleep(pause: float) -> None:
        clock[0] += pause

    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock[0], sleep=sleep))
    taken: list[float] = []

    def once() -> DeviceCeilings:
        clock[0] += seconds
        taken.append(100e9 * (1 + gain * len(taken)))
        return msgspec.structs.replace(DEVICE, vector_flops={"float32": taken[-1]})

    found = module._rounds(once)
    assert len(taken) == rounds
    assert found.vector_flops == {"float32": max(taken)}


def test_the_best_round_counts() -> None:
    """Whichever it was."""
    rates = itertools.chain([3e9, 9e9], itertools.repeat(1e9))
    found = module._rounds(lambda: msgspec.structs.replace(DEVICE, vector_flops={"float32": next(rates)}))
    assert found.vector_flops == {"float32": 9e9}
