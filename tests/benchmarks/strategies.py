"""All strategies, and Kernel Tuner's, on recorded spaces of an A100 and an MI250X.

    pip install '.[peers]'            or, into a folder of its own: pip install --target FOLDER kernel-tuner
    python -m tests.benchmarks.strategies --recorded FOLDER [--packages FOLDER] [--repeats 20]

FOLDER of `--recorded`: `<kernel>_milo.T1.json` and `<kernel>_milo_<device>.json.gz` of the benchmark hub.
Writes docs/results/strategies.md with its picture. What ran is kept under artifacts/benchmarks/strategies: a
second run goes on from there (`--again`: from the beginning).
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pipeline.config.code import Code
from pipeline.errors import ConfigError
from pipeline.records.record import Record, digest, read_record, to_json
from pipeline.records.recorded import RecordedSpace
from pipeline.search.registry import module
from pipeline.store.atomic import write_atomic
from tests.benchmarks import strategies_page
from tests.benchmarks.figures import KEPT, ROOT
from tests.benchmarks.strategy_runs import NoRuns, Run, Table, our_runs, read_space, table_of, their_runs

SPACES = (("convolution", "A100"), ("convolution", "MI250X"), ("dedispersion", "A100"))
TUNED_ON = "convolution A100"
PER_ROUND = 8
EVALUATIONS = 200
REPEATS = 20
LIMIT = 400.0  # seconds for all repeats of one of Kernel Tuner's strategies on one space

OURS = (
    *("random", "latin_hypercube", "tpe", "cma_es", "nsga2"),
    *("evolution", "basin_hopping", "surrogate", "successive_halving"),
)
"""Those that search a space from nothing: grid is no search; ablation and transfer begin with a winner. Nor
`gp`, which thinks for about a second per proposal: its searches here would take hours (`--ours gp`)."""

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
    failure: str | None = None
    """Why there are none."""


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
    subjects = [_subject(kernel, device, options) for kernel, device in SPACES]
    command = f"python -m tests.benchmarks.strategies {shlex.join(_shown(sys.argv[1:]))}"
    strategies_page.publish(subjects, command, options)


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
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for one of theirs on one space")
    parser.add_argument("--again", action="store_true", help="run also what ran before")
    return parser.parse_args()


def _subject(kernel: str, device: str, options: argparse.Namespace) -> Subject:
    t1 = options.recorded / f"{kernel}_milo.T1.json"
    results = options.recorded / f"{kernel}_milo_{device}.json.gz"
    for path in (t1, results):
        if not path.is_file():
            sys.exit(f"error: {path} is not there; give the folder of the benchmark hub's files: --recorded")
    space = read_space(t1, results)
    seeds = range(options.repeats)
    name = f"{kernel} {device}"

    def ours(strategy: str) -> Sequence[Run]:
        return our_runs(space, settings(strategy, options.evaluations), seeds)

    def theirs(strategy: str) -> Sequence[Run]:
        return their_runs(
            space, options.packages, strategy, seeds, evaluations=options.evaluations, limit=options.limit
        )

    return Subject(
        name=name,
        space=space,
        table=table_of(space),
        ours={each: _kept(f"{name} {each}", _code(each), options, ours, each) for each in options.ours},
        theirs={
            each: _kept(f"{name} theirs {each}", "", options, theirs, each)
            for each in (options.theirs if options.packages else [])
        },
    )


def settings(strategy: str, evaluations: int) -> dict[str, Any]:
    """The search as a user would state it: rounds of so many, and the budget; all else by default."""
    rounds = -(-evaluations // PER_ROUND)
    # Rungs measure fewer and fewer points: a ladder has more rounds for the same number of evaluations.
    rounds *= 3 if strategy == "successive_halving" else 1
    return {
        "strategy": strategy,
        "rounds": rounds,
        "variants_per_round": PER_ROUND,
        "variants": evaluations,
    }


def _kept(
    name: str,
    code: str,
    options: argparse.Namespace,
    run: Callable[[str], Sequence[Run]],
    strategy: str,
) -> Runs:
    """What ran before with the same code and numbers, or what runs now."""
    same = digest([options.evaluations, options.repeats, code])
    path = KEPT / "strategies" / f"{name.replace(' ', '-')}-{same}.json"
    if path.is_file() and not options.again:
        return read_record(path, Runs)
    print(f"{name} …", file=sys.stderr, flush=True)
    try:
        found = Runs(runs=tuple(run(strategy)))
    except (NoRuns, ConfigError) as error:
        found = Runs(failure=str(error))
    write_atomic(path, to_json(found))
    return found


def _code(strategy: str) -> str:
    """Of what proposes: a strategy that changed runs again."""
    return Code(ROOT).digest("pipeline.search.simulate", module(strategy))


def _shown(arguments: Sequence[str]) -> list[str]:
    """Folders of this machine have no place in a page."""
    hidden = {"--recorded": "RECORDED", "--packages": "PACKAGES"}
    return [hidden.get(before, each) for before, each in zip(["", *arguments[:-1]], arguments, strict=True)]


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    np.seterr(all="ignore")
    main()
