"""TPE against the grid of the C++ matmul, both measured here: 95 % of the best in a quarter of the time?

    python -m tests.benchmarks.tpe_against_grid [--searches 20] [--first-seed 1] [--workload bert_base]
        [--out=PAGE]

The grid goes through the pipeline as a user's would, in a private copy of the project. Then come the
searches, each with another seed. They share the binaries and their verdicts, and no measurement: all times
are forgotten before each of them. At the end the winners are measured side by side with the grid's best. Run
it on a quiet machine (20 minutes); writes docs/results/tpe_against_grid.md. What was measured is kept under
artifacts/benchmarks: `--kept` writes the page again.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline.records.layout import STAGES, output_path, spec_path
from pipeline.records.planning.specs import GenerateSpec, ProfileSpec
from pipeline.records.record import Record, read_record, to_json
from pipeline.records.results.compiled import CompileOutput, CompileRecord
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.search.search_trial import Trial
from pipeline.search.trial_history import read_history
from pipeline.search.trial_losses import best
from pipeline.store.atomic import write_atomic
from tests.benchmarks import grid_page
from tests.benchmarks.figures import KEPT, ROOT
from tests.benchmarks.grid_scores import allowed
from tests.benchmarks.side_by_side import SideBySide
from tests.benchmarks.sweeps import benchmark_checkout
from tests.benchmarks.tree import spend
from tests.end_to_end.checkout import Checkout

PAGE = ROOT / "docs" / "results" / "tpe_against_grid.md"
SPACE = (
    "kernel.implementations.cpp.tunables.MICRO_ROWS.values=[1,4,6,8,12,14]",
    "kernel.implementations.cpp.tunables.MICRO_VECTORS.values=[1,2,3,4]",
    "kernel.implementations.cpp.tunables.BLOCK_K.values=[128,256,512]",
)
"""More values than are declared, so that a quarter of the valid points is a search's worth."""
TASK = (
    *("kernel=matmul", "hardware=cpu", "optimization=full", *SPACE),
    *("verify=fast", "profile=standard", "profile.baselines=[]", "tracking=disabled"),
)
CONTENDERS = 5
"""The grid's fastest variants that are measured again: the first of a noisy list need not be the fastest."""
LIMIT = 3000.0  # seconds for the grid, or for one search, where the machine is busy


class Sweep(Record, frozen=True, kw_only=True):
    """One run of the pipeline: a grid or a search."""

    overrides: tuple[str, ...]
    trials: tuple[Trial, ...]
    keys: dict[str, str]
    """Stage -> key."""
    seconds: float
    """Wall time of the command."""

    @property
    def winner(self) -> Trial | None:
        """The fastest variant."""
        return best(self.trials)

    @property
    def measured(self) -> list[Trial]:
        """Those with a time, the fastest first."""
        timed = [each for each in self.trials if each.seconds is not None]
        return sorted(timed, key=lambda each: each.seconds.value if each.seconds else 0.0)


class Study(Record, frozen=True, kw_only=True):
    """All that was found."""

    task: tuple[str, ...]
    """Overrides that all runs share."""
    grid: Sweep
    searches: tuple[Sweep, ...]
    reference: str
    """Variant: the fastest of the grid's contenders, measured again."""
    contenders: dict[str, ConfidenceInterval]
    """Variant -> its speed over that of the grid's first."""
    shares: dict[str, ConfidenceInterval]
    """Variant that won a search -> its speed over the reference's."""
    space: GenerateSpec
    """Of the first search."""


class Machine:
    """A private copy of the project in which one task is measured again and again."""

    def __init__(self, scratch: Path, workload: str) -> None:
        self._scratch = scratch
        self.task = (f"workload={workload}", *TASK)
        self.checkout: Checkout = benchmark_checkout(scratch / "project")
        self.store = self.checkout.folder / "artifacts"

    def run(self, overrides: Sequence[str]) -> Sweep:
        """One search as a user starts it; nothing that was measured before counts.

        Raises
        ------
        SystemExit
            Fewer variants were measured now than the search says.
        """
        shutil.rmtree(self.store / "store" / "profile", ignore_errors=True)
        before = {stage: self._keys(stage) for stage in STAGES}
        lines = (*self.task, *overrides)
        spent = spend(
            self.checkout.command("profile", "--config", f"overrides={' '.join(lines)}"),
            folder=self.checkout.folder,
            environment=self.checkout.environment,
            temporary=self._scratch,
            limit=LIMIT,
        )
        keys = {stage: (self._keys(stage) - before[stage]).pop() for stage in STAGES}
        sweep = Sweep(overrides=tuple(overrides), trials=self._trials(keys), keys=keys, seconds=spent.seconds)
        made = len(list((self.store / "store" / "profile").glob("*/*/record.json")))
        reached = sum(each.stage == "profile" for each in sweep.trials)
        if made < reached:
            raise SystemExit(f"error: {reached} variants have a measurement, {made} were measured now")
        return sweep

    def compiled(self, sweep: Sweep) -> list[CompileRecord]:
        """What compile wrote of a run of one round."""
        path = output_path(self.store, "compile", sweep.keys["compile"], 0)
        return list(read_record(path, CompileOutput).records)

    def bench(self, grid: Sweep) -> SideBySide:
        """Where variants of the grid are measured side by side."""
        spec = read_record(spec_path(self.store, "profile", grid.keys["profile"]), ProfileSpec)
        return SideBySide(self.store, spec, self.compiled(grid))

    def _keys(self, stage: str) -> set[str]:
        folder = self.store / stage
        return {each.name for each in folder.iterdir()} if folder.is_dir() else set()

    def _trials(self, keys: dict[str, str]) -> tuple[Trial, ...]:
        stages = STAGES[1:]
        rounds = len(list((self.store / stages[-1] / keys[stages[-1]]).glob("round*.json")))
        return tuple(
            read_history(
                [
                    output_path(self.store, each, keys[each], number)
                    for number in range(rounds)
                    for each in stages
                ]
            )
        )


def study(machine: Machine, seeds: Sequence[int]) -> Study:
    """The grid, the searches, and their winners side by side."""
    grid = machine.run(("search=grid",))
    count = len(grid.measured)
    _say(f"grid: {count} of {len(grid.trials)} variants measured", grid.seconds)
    searches: list[Sweep] = []
    for seed in seeds:
        searches.append(
            machine.run(("search=optuna", f"search.variants={allowed(count)}", f"search.seed={seed}"))
        )
        _say(f"search {len(searches)} of {len(seeds)}, seed {seed}", searches[-1].seconds)
    started = time.monotonic()
    bench = machine.bench(grid)
    first = [each.variant.id for each in grid.measured[:CONTENDERS]]
    contenders = bench.speeds(first, first[0])
    reference = max(contenders, key=lambda each: contenders[each].value)
    winners = [each.winner.variant.id for each in searches if each.winner is not None]
    shares = bench.speeds(winners, reference)
    _say(f"{len(contenders)} of the grid and {len(shares)} winners side by side", time.monotonic() - started)
    key = searches[0].keys["generate"]
    return Study(
        task=machine.task,
        grid=grid,
        searches=tuple(searches),
        reference=reference,
        contenders=contenders,
        shares=shares,
        space=read_record(spec_path(machine.store, "generate", key), GenerateSpec),
    )


def _say(what: str, seconds: float) -> None:
    print(f"{what} · {seconds:.0f} s", file=sys.stderr, flush=True)


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", default="bert_base")
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=PAGE)
    parser.add_argument("--kept", action="store_true", help="measure nothing: the page of the last run")
    options = parser.parse_args()
    kept = KEPT / f"tpe_against_grid-{options.workload}.json"
    if not options.kept:
        seeds = range(options.first_seed, options.first_seed + options.searches)
        with tempfile.TemporaryDirectory(prefix="km-") as scratch:
            write_atomic(kept, to_json(study(Machine(Path(scratch), options.workload), seeds)))
    if not kept.is_file():
        sys.exit(f"error: {kept} is not there: run it without --kept")
    found = read_record(kept, Study)
    # Of what was measured, which with --kept need not be what is asked for now.
    first = found.searches[0].overrides[-1].rpartition("=")[2]
    shown = f"--searches {len(found.searches)} --first-seed {first} --workload {options.workload}"
    grid_page.publish(found, f"python -m tests.benchmarks.tpe_against_grid {shown}", options.out)


if __name__ == "__main__":
    main()
