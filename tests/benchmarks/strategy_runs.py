"""Searches on recorded spaces, ours and Kernel Tuner's. In: a space, strategies. Out: what each evaluated, in order.

Both see one table: the median of the recorded samples, and the recorded failures. Ours run in
`pipeline.search.simulate`, in rounds; Kernel Tuner's in its own simulation mode, on a copy of its cache file
in which each time is that median, with the conditions of the T1 file as its restrictions.
"""

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

from pipeline.formats.combining import combined
from pipeline.formats.registry import read_recorded
from pipeline.records.kernel import TunableValue
from pipeline.records.record import from_plain
from pipeline.records.recorded import RecordedResult, RecordedSpace
from pipeline.records.search import Search
from pipeline.search.simulate import Recording, simulate
from tests.benchmarks.figures import ROOT

MILLISECONDS = 1e3

OURS = (
    *("random", "latin_hypercube", "tpe", "gp", "cma_es", "nsga2"),
    *("evolution", "basin_hopping", "successive_halving"),
)
"""Those that search a space from nothing: grid is no search, ablation and transfer begin with a winner."""

THEIRS = (
    *("random_sample", "genetic_algorithm", "diff_evo", "pso", "firefly_algorithm", "simulated_annealing"),
    *("dual_annealing", "basinhopping", "mls", "greedy_mls", "ordered_greedy_mls", "greedy_ils"),
    *("bayes_opt", "hybrid_vndx", "adaptive_tabu_greywolf"),
)
"""All of Kernel Tuner's that run without a further package, with their default settings."""


class Table(NamedTuple):
    """A recorded space as numbers, in the order of its results."""

    name: str
    seconds: np.ndarray
    """Median seconds per call; infinite where the configuration failed."""
    cost: np.ndarray
    """Seconds that trying the configuration took: compile, measure, verify."""
    index: Mapping[str, int]
    """Configuration, its values joined by commas -> place."""


class Run(NamedTuple):
    """One search."""

    strategy: str
    seed: int
    evaluated: tuple[int, ...]
    """Places in the table, in the order of evaluation, none twice."""
    thought: float
    """Processor seconds of the whole search: what the strategy itself takes."""
    error: str | None = None


def read_space(t1: Path, results: Path) -> RecordedSpace:
    """The space of the one with the measurements of the other."""
    return combined(read_recorded(t1), read_recorded(results))


def table_of(space: RecordedSpace) -> Table:
    """Its results as numbers."""
    return Table(
        name=f"{space.kernel} on {space.device}",
        seconds=np.array([_seconds(result) for result in space.results]),
        cost=np.array([_cost(result) for result in space.results]),
        index={_key(space, each.tunables): place for place, each in enumerate(space.results)},
    )


def our_runs(space: RecordedSpace, search: Mapping[str, Any], seeds: Sequence[int]) -> list[Run]:
    """One of our strategies, with several seeds."""
    recording, index = Recording(space), table_of(space).index
    runs = []
    for seed in seeds:
        wanted = from_plain({"name": "", "description": "", **search, "seed": seed}, Search)
        started = time.process_time()
        trials = simulate(recording, wanted).trials
        thought = time.process_time() - started
        keys = dict.fromkeys(index[_key(space, trial.variant.tunables)] for trial in trials)
        runs.append(Run(wanted.strategy, seed, tuple(keys), thought))
    return runs


def their_runs(
    t1: Path, results: Path, packages: Path, names: Sequence[str], seeds: Sequence[int], evaluations: int
) -> list[Run]:
    """Kernel Tuner's strategies, with several seeds."""
    space = read_space(t1, results)
    index = table_of(space).index
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        cache = Path(scratch) / "cache.json"
        cache.write_text(json.dumps(_cache(space)))
        job = Path(scratch) / "job.json"
        job.write_text(
            json.dumps(
                {
                    "kernel": space.kernel,
                    "problem": list(space.problem),
                    "tunables": space.tunables,
                    "rules": [each.rule for each in space.constraints],
                    "cache": str(cache),
                    "evaluations": evaluations,
                    "seeds": list(seeds),
                    "strategies": list(names),
                }
            )
        )
        child = subprocess.run(
            [sys.executable, "-S", str(ROOT / "tests" / "benchmarks" / "strategies_child.py"), str(job)],
            env={**os.environ, "PYTHONPATH": str(packages)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    return [
        Run(
            each["strategy"],
            each["seed"],
            tuple(index[key] for key in each.get("keys", ())[:evaluations]),
            each["seconds"],
            each.get("error"),
        )
        for each in lines
    ]


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


def _cost(result: RecordedResult) -> float:
    return result.cost_seconds
