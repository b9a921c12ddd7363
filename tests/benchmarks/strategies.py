"""All strategies, and Kernel Tuner's, on recorded spaces of an A100 and an MI250X.

    python -m pip install --constraint requirements.lock --editable '.[peers]'
    python -m tests.benchmarks.strategies --recorded FOLDER [--packages FOLDER] [--repeats 20] [--jobs 2]

FOLDER of `--recorded`: `<kernel>_milo.T1.json` and `<kernel>_milo_<device>.json.gz` of the benchmark hub.
Writes docs/results/strategies.md with its pictures, within ten minutes on one core. What ran is kept under
artifacts/benchmarks/strategies: a second run goes on from there (`--again`: from the beginning).
"""

import argparse
import functools
import multiprocessing
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.plan.identity.import_closure import Code
from pipeline.records.errors import ConfigError
from pipeline.records.record import Record, digest, digest_bytes, read_record, to_json
from pipeline.records.search.recorded_space import RecordedSpace
from pipeline.search.simulated_search import Recording
from pipeline.search.strategy_registry import module
from pipeline.store.atomic import write_atomic
from tests.benchmarks import strategies_page
from tests.benchmarks.figures import KEPT, ROOT
from tests.benchmarks.strategy_runs import (
    CHILD,
    NoRuns,
    Run,
    Table,
    our_runs,
    read_space,
    table_of,
    their_runs,
)

SPACES = (("convolution", "A100"), ("convolution", "MI250X"), ("dedispersion", "A100"))
PER_ROUND = 8
EVALUATIONS = 200
REPEATS = 20
LIMIT = 40.0  # processor seconds for all repeats of one strategy on one space

OURS = (
    *("random", "optuna/qmc", "optuna/tpe", "optuna/gp", "optuna/cmaes", "optuna/nsgaii"),
    *("evolution", "basin_hopping", "surrogate", "successive_halving"),
)
"""Those that search a space from nothing: grid is no search; ablation and transfer begin with a winner."""

THEIRS = (
    *("random_sample", "genetic_algorithm", "diff_evo", "pso", "firefly_algorithm", "simulated_annealing"),
    *("dual_annealing", "basinhopping", "mls", "greedy_mls", "ordered_greedy_mls", "greedy_ils"),
    *("bayes_opt", "hybrid_vndx", "adaptive_tabu_greywolf"),
)
"""All of Kernel Tuner's that need no further package. `minimize` is part of others; `skopt`,
`pyatf_strategies` and `nsga2` need packages that it does not bring."""


class Runs(Record, frozen=True, kw_only=True):
    """One strategy on one space."""

    runs: tuple[Run, ...] = ()
    """Those that ended within the limit."""
    failure: str | None = None
    """Why there are none."""


class Cell(NamedTuple):
    """One strategy on one space, to be run."""

    kernel: str
    device: str
    strategy: str
    theirs: bool

    @property
    def subject(self) -> str:
        """Name of the space."""
        return f"{self.kernel} {self.device}"


class Subject(NamedTuple):
    """One space."""

    name: str
    space: RecordedSpace
    table: Table
    ours: Mapping[str, Runs]
    theirs: Mapping[str, Runs]


def main() -> None:
    """Run what has not run yet, and write the page."""
    options = _options()
    began = time.monotonic()
    for kernel, device in SPACES:
        _space(kernel, device, options.recorded)  # say what is missing before anything runs
    found = _all(_cells(options), options)
    subjects = [_subject(kernel, device, found, options) for kernel, device in SPACES]
    command = f"python -m tests.benchmarks.strategies {shlex.join(_shown(sys.argv[1:]))}"
    strategies_page.publish(subjects, command, options)
    print(f"{(time.monotonic() - began) / 60:.1f} min", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recorded", type=Path, required=True, help="folder of the hub's files")
    parser.add_argument("--packages", type=Path, help="folder that pip installed kernel-tuner into")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    parser.add_argument("--ours", nargs="*", default=list(OURS))
    parser.add_argument("--theirs", nargs="*", default=list(THEIRS))
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="processor seconds of one strategy on one space"
    )
    parser.add_argument("--jobs", type=int, default=1, help="strategies that run side by side")
    parser.add_argument("--again", action="store_true", help="run also what ran before")
    return parser.parse_args()


def _cells(options: argparse.Namespace) -> list[Cell]:
    return [
        Cell(kernel, device, strategy, theirs)
        for kernel, device in SPACES
        for strategies, theirs in (
            (options.theirs if options.packages else [], True),
            (options.ours, False),
        )
        for strategy in strategies
    ]


def _all(cells: Sequence[Cell], options: argparse.Namespace) -> dict[Cell, Runs]:
    """In processes of their own, for one reads the number of threads when it loads its libraries."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=fresh) as pool:
        return dict(zip(cells, pool.map(functools.partial(_runs, options=options), cells), strict=True))


def _runs(cell: Cell, options: argparse.Namespace) -> Runs:
    """What ran before with the same code and numbers, or what runs now."""
    code = _their_code(options.packages) if cell.theirs else _our_code(cell.strategy)
    same = digest([options.evaluations, options.repeats, options.limit, code])
    name = "-".join(
        [
            cell.kernel,
            cell.device,
            *(["theirs"] if cell.theirs else []),
            cell.strategy.replace("/", "-"),
            same,
        ]
    )
    path = KEPT / "strategies" / f"{name}.json"
    if path.is_file() and not options.again:
        return read_record(path, Runs)
    began = time.monotonic()
    found = _run(cell, options)
    write_atomic(path, to_json(found))
    said = f"{len(found.runs)} searches" if found.failure is None else found.failure
    print(
        f"{cell.subject} {'theirs ' if cell.theirs else ''}{cell.strategy}: {said}, "
        f"{time.monotonic() - began:.0f} s",
        file=sys.stderr,
        flush=True,
    )
    return found


def _run(cell: Cell, options: argparse.Namespace) -> Runs:
    space, seeds = _space(cell.kernel, cell.device, options.recorded), range(options.repeats)
    try:
        if cell.theirs:
            runs = their_runs(
                space,
                options.packages,
                cell.strategy,
                seeds,
                evaluations=options.evaluations,
                limit=options.limit,
            )
        else:
            search = settings(cell.strategy, options.evaluations)
            runs = our_runs(
                _recording(cell.kernel, cell.device, options.recorded), search, seeds, options.limit
            )
    except (NoRuns, ConfigError) as error:
        return Runs(failure=str(error))
    return Runs(runs=tuple(runs), failure=None if runs else f"no search ended in {options.limit:g} s")


@functools.cache
def _space(kernel: str, device: str, recorded: Path) -> RecordedSpace:
    t1, results = recorded / f"{kernel}_milo.T1.json", recorded / f"{kernel}_milo_{device}.json.gz"
    for path in (t1, results):
        if not path.is_file():
            sys.exit(f"error: {path} is not there; give the folder of the benchmark hub's files: --recorded")
    return read_space(t1, results)


@functools.cache
def _recording(kernel: str, device: str, recorded: Path) -> Recording:
    return Recording(_space(kernel, device, recorded))


def _subject(kernel: str, device: str, found: Mapping[Cell, Runs], options: argparse.Namespace) -> Subject:
    space = _space(kernel, device, options.recorded)

    def of(strategies: Sequence[str], theirs: bool) -> dict[str, Runs]:
        return {each: found[Cell(kernel, device, each, theirs)] for each in strategies}

    return Subject(
        name=f"{kernel} {device}",
        space=space,
        table=table_of(space),
        ours=of(options.ours, False),
        theirs=of(options.theirs if options.packages else [], True),
    )


def settings(strategy: str, evaluations: int) -> dict[str, Any]:
    """The search as a user would state it: rounds of so many, and the budget; all else by default."""
    rounds = -(-evaluations // PER_ROUND)
    # Rungs measure fewer and fewer points: a ladder has more rounds for the same number of evaluations.
    rounds *= 3 if strategy == "successive_halving" else 1
    name, _, sampler = strategy.partition("/")
    return {
        "strategy": name,
        "settings": {name: {"sampler": sampler}} if sampler else {},
        "rounds": rounds,
        "variants_per_round": PER_ROUND,
        "variants": evaluations,
    }


def _our_code(strategy: str) -> str:
    """Of what proposes: a strategy that changed runs again."""
    return Code(ROOT).digest("pipeline.search.simulated_search", module(strategy.partition("/")[0]))


def _their_code(packages: Path) -> str:
    """Kernel Tuner's version, and how it is run."""
    return f"{strategies_page.version(packages)} {digest_bytes(CHILD.read_bytes())}"


def _shown(arguments: Sequence[str]) -> list[str]:
    """Folders of this machine have no place in a page."""
    hidden = {"--recorded": "RECORDED", "--packages": "PACKAGES"}
    return [hidden.get(before, each) for before, each in zip(["", *arguments[:-1]], arguments, strict=True)]


if __name__ == "__main__":
    main()
