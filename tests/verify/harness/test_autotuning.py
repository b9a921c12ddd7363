"""Autotuners on a device: few configurations run, and none is taken that the device refuses."""

from collections.abc import Callable
from typing import Any

import pytest
import triton.testing

from pipeline.verify.harness.runtime.autotuning import stand_in_for_benchmarks


class Refused(Exception):
    """What an autotuner takes for "does not run here"."""


class Tuner:
    """Benchmarks as Triton's autotuner does: one call after the other, with these variables around it."""

    keys = ("size",)

    def __init__(self, refused: frozenset[int]) -> None:
        self.refused = refused
        self.called: list[int] = []

    def benchmark(self, config: int, size: int) -> float:
        """Of one configuration."""
        full_nargs = {"size": size}

        def kernel_call() -> None:
            self.called.append(config)
            assert full_nargs
            if config in self.refused:
                raise Refused

        try:
            found: Any = triton.testing.do_bench(kernel_call, quantiles=(0.5, 0.2, 0.8))
        except Refused:
            return float("inf")
        return float(found[0])

    def choose(self, configs: int, size: int) -> int:
        """The fastest of the first so many."""
        times = [self.benchmark(config, size) for config in range(configs)]
        return times.index(min(times))


@pytest.fixture
def synchronized(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Triton's benchmarks replaced; one element for each wait for the device."""
    for name in ("do_bench", "do_bench_cudagraph"):
        monkeypatch.setattr(triton.testing, name, getattr(triton.testing, name))
    waits: list[int] = []
    stand_in_for_benchmarks(lambda: waits.append(1))
    return waits


def test_few_configurations_run(synchronized: list[int]) -> None:
    """Of 40, as many as there are ever shorter times in a random order: about four for each size."""
    tuner = Tuner(frozenset())
    for size in range(20):
        tuner.choose(40, size)
    assert len(tuner.called) < 20 * 8
    assert len(synchronized) == len(tuner.called)


def test_sizes_get_different_configurations(synchronized: list[int]) -> None:
    """The same in each process."""
    chosen = [Tuner(frozenset()).choose(40, size) for size in range(20)]
    assert chosen == [Tuner(frozenset()).choose(40, size) for size in range(20)]
    assert 1 < len(set(chosen)) <= 4
    assert synchronized


def test_what_the_device_refuses_is_not_taken(synchronized: list[int]) -> None:
    """However short its time would be."""
    refused = frozenset(range(0, 40, 2))
    assert all(Tuner(refused).choose(40, size) not in refused for size in range(20))
    assert synchronized


def test_other_calls(synchronized: list[int]) -> None:
    """Called once, regardless of who measures them."""
    calls: list[int] = []
    measure: Callable[..., Any] = triton.testing.do_bench
    assert measure(lambda: calls.append(1), warmup=1, rep=1) == 1.0
    assert (len(calls), len(synchronized)) == (1, 1)
