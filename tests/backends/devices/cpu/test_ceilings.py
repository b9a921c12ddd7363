"""Rounds of the processor's ceilings: how many, and that the best of them counts."""

import itertools
from types import SimpleNamespace

import msgspec
import pytest

from pipeline.backends.devices.cpu import ceilings as module
from pipeline.backends.devices.device_ceilings import DeviceCeilings
from pipeline.backends.devices.disturbance import Disturbance
from tests.measure.stand_ins import DEVICE


@pytest.mark.parametrize(
    ("seconds", "gain", "others", "rounds"),
    [
        (1.2, 0.5, 0.0, 5),
        (1.2, 0.0, 0.0, 3),
        (4.0, 0.5, 0.0, 3),
        (2.5, 0.5, 0.0, 3),
        (0.1, 0.0, 0.0, 11),
        (0.1, 0.5, 0.0, 11),
        (1.2, 0.0, 0.2, 5),
        (0.45, 0.0, 0.2, 13),
        (0.45, 0.0, 0.05, 4),
    ],
    ids=[
        "five where each improves",
        "three where none does",
        "three beyond all time",
        "no time for a fourth",
        "short ones",
        "short ones that improve",
        "beside other work",
        "short ones beside other work",
        "beside hardly anything",
    ],
)
def test_rounds(
    seconds: float, gain: float, others: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three at least and for a second and a half; five at most on a quiet machine, else all of the time."""
    clock = [100.0]

    def sleep(pause: float) -> None:
        clock[0] += pause

    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock[0], sleep=sleep))
    beside = Disturbance(others=others, stolen=0.0)
    monkeypatch.setattr(module, "disturbance", lambda before, after, own: beside)
    taken: list[float] = []

    def once() -> DeviceCeilings:
        clock[0] += seconds
        taken.append(100e9 * (1 + gain * len(taken)))
        return msgspec.structs.replace(DEVICE, vector_flops={"float32": taken[-1]})

    found = module._rounds(once, module.SECONDS_AT_MOST)
    assert len(taken) == rounds
    assert found.vector_flops == {"float32": max(taken)}


@pytest.mark.slow
def test_the_best_round_counts() -> None:
    """Whichever it was."""
    rates = itertools.chain([3e9, 9e9], itertools.repeat(1e9))
    found = module._rounds(
        lambda: msgspec.structs.replace(DEVICE, vector_flops={"float32": next(rates)}), 2.0
    )
    assert found.vector_flops == {"float32": 9e9}
