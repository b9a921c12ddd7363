"""Searches on recorded spaces, ours and Kernel Tuner's. In: a space, strategies. Out: what each found.

Both see one table: the median of the recorded samples, and the recorded failures. Ours run in
`pipeline.search.simulated_search`, in rounds; Kernel Tuner's in its own simulation mode, on a cache file in
which each time is that median, with the conditions of the T1 file as its restrictions.
"""

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.interop.formats.format_registry import combined, read_recorded
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.configuration.search_settings import Search
from pipeline.records.record import Record, from_plain
from pipeline.records.search.recorded_space import RecordedResult, RecordedSpace
from pipeline.search.simulated_search import Recording, simulate
from tests.benchmarks.figures import ROOT
from tests.benchmarks.processor_limit import Spent, processor_limit

MILLISECONDS = 1e3
SLACK = 10  # times the limit by the clock: the machine may have other things to do
CHILD = ROOT / "tests" / "benchmarks" / "strategies_child.py"


class Table(NamedTuple):
    """A recorded space as numbers, in the order of its results."""

    seconds: np.ndarray
    """Median seconds per call; infinite where the configuration failed."""
    cost: np.ndarray
    """Seconds that trying the configuration took: compile, measure, verify, the tuner itself."""
    index: Mapping[str, int]
    """Configuration, its values joined by commas -> place."""

    @property
    def optimum(self) -> float:
        """Seconds per call of the best configuration."""
        return float(self.seconds.min())


class Run(Record, frozen=True, kw_only=True):
    """One search."""

    seed: int
    found: tuple[float | None, ...]
    """Seconds per call, evaluation by evaluation; None: it failed, or was measured briefly only."""
    cost: tuple[float, ...]
    """Recorded seconds that each evaluation took."""
    thought: float
    """Processor seconds of the strategy itself, and of looking up, for the whole search."""

    @property
    def values(self) -> list[float]:
        """What was found, infinite where nothing was."""
        return [math.inf if each is None else each for each in self.found]


def read_space(t1: Path, results: Path) -> RecordedSpace:
    """The space of the one with the measurements of the other."""
    return combined(read_recorded(t1), read_recorded(results))


def table_of(space: RecordedSpace) -> Table:
    """Its results as numbers."""
    return Table(
        seconds=np.array([_seconds(result) for result in space.results]),
        cost=np.array([result.cost_seconds for result in space.results]),
        index={_key(space, each.tunables): place for place, each in enumerate(space.results)},
    )


def our_runs(
    recording: Recording, search: Mapping[str, Any], seeds: Sequence[int], limit: float
) -> list[Run]:
    """One of our strategies, with several seeds: those that end within `limit` processor seconds."""
    first = from_plain({"name": "", "description": "", **search, "rounds": 1}, Search)
    simulate(recording, first)  # imports, the lattice
    runs: list[Run] = []
    with contextlib.suppress(Spent), processor_limit(limit):
        for seed in seeds:
            wanted = from_plain({"name": "", "description": "", **search, "seed": seed}, Search)
            started = time.process_time()
            trials = simulate(recording, wanted).trials
            runs.append(
                Run(
                    seed=seed,
                    found=tuple(trial.seconds.value if trial.seconds else None for trial in trials),
                    cost=tuple(trial.spent for trial in trials),
                    thought=time.process_time() - started,
                )
            )
    return runs


class NoRuns(Exception):
    """A strategy of Kernel Tuner failed; the text says how."""


def their_runs(
    space: RecordedSpace, packages: Path, name: str, seeds: Sequence[int], *, evaluations: int, limit: float
) -> list[Run]:
    """One of Kernel Tuner's strategies with its default settings; the seeds that end within the limit.

    Raises
    ------
    NoRuns
        It failed.
    """
    table = table_of(space)
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        cache, job = Path(scratch) / "cache.json", Path(scratch) / "job.json"
        cache.write_text(json.dumps(_cache(space), indent=0))
        job.write_text(json.dumps(_job(space, cache, name, seeds, evaluations) | {"limit": limit}))
        try:
            child = subprocess.run(
                [sys.executable, "-S", str(CHILD), str(job)],
                env={**os.environ, "PYTHONPATH": str(packages)},
                capture_output=True,
                text=True,
                check=False,
                timeout=SLACK * limit + 60,
            )
        except subprocess.TimeoutExpired:
            raise NoRuns(f"did not answer within {SLACK * limit + 60:g} s") from None
    if child.returncode:
        raise NoRuns(child.stderr.strip().splitlines()[-1] if child.stderr.strip() else "no answer")
    runs = []
    for each in map(json.loads, child.stdout.splitlines()):
        # What breaks a rule costs its budget nothing, and is in no table.
        places = [table.index[key] for key in each["keys"] if key in table.index][:evaluations]
        seconds = [float(table.seconds[place]) for place in places]
        runs.append(
            Run(
                seed=each["seed"],
                found=tuple(value if math.isfinite(value) else None for value in seconds),
                cost=tuple(float(table.cost[place]) for place in places),
                thought=each["seconds"],
            )
        )
    return runs


def _job(
    space: RecordedSpace, cache: Path, name: str, seeds: Sequence[int], evaluations: int
) -> dict[str, Any]:
    return {
        "kernel": space.kernel,
        "problem": list(space.problem),
        "tunables": space.tunables,
        "rules": [each.rule for each in space.constraints],
        "cache": str(cache),
        "evaluations": evaluations,
        "seeds": list(seeds),
        "strategy": name,
    }


def _cache(space: RecordedSpace) -> dict[str, Any]:
    """A cache file of Kernel Tuner: median times, in milliseconds, and its own words for failures."""
    entries: dict[str, Any] = {}
    for each in space.results:
        costs = {
            "compile_time": each.compile_seconds,
            "verification_time": each.verify_seconds,
            "benchmark_time": each.benchmark_seconds,
        }
        entries[_key(space, each.tunables)] = {
            **{name: each.tunables[name] for name in space.tunables},
            "time": each.reason if each.median_seconds is None else each.median_seconds * MILLISECONDS,
            **{name: (value or 0.0) * MILLISECONDS for name, value in costs.items()},
        }
    return {
        "device_name": space.device,
        "kernel_name": space.kernel,
        "problem_size": list(space.problem),
        "tune_params_keys": list(space.tunables),
        "tune_params": space.tunables,
        "objective": "time",
        "cache": entries,
    }


def _key(space: RecordedSpace, tunables: Mapping[str, TunableValue]) -> str:
    return ",".join(str(tunables[name]) for name in space.tunables)


def _seconds(result: RecordedResult) -> float:
    return math.inf if result.median_seconds is None else result.median_seconds
