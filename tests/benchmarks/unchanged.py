"""Nothing to do, and one more variant, in 10,000 variants of 100 tasks.

    python -m tests.benchmarks.unchanged [--tasks 100] [--repeats 3]

The tasks are made up (`tests.benchmarks.made_up`) and done, from generate to the report, without MLflow.
Then Snakemake is asked again, beside `snakemake --version`; then one of the kernels gets one more value of a
tunable, which is one more variant, and Snakemake compiles, verifies and measures it and makes the tables and
the report anew.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pipeline.records.record import read_record
from pipeline.records.results.compiled import CompileRecord
from pipeline.records.results.profiled import ProfileRecord
from pipeline.records.results.verified import VerifyRecord
from tests.benchmarks.figures import Figure, Section, Table, measured, publish, seconds
from tests.benchmarks.made_up import EXPERIMENT, Size, declare, one_more_value
from tests.benchmarks.sweeps import benchmark_checkout
from tests.benchmarks.tree import Spent, spend
from tests.end_to_end.checkout import Checkout

NAME = "unchanged"
OVERRIDES = (f"experiment={EXPERIMENT}", "tracking=disabled")
NOTHING = 2.0  # seconds beyond `snakemake --version`
ONE_MORE = 3.0  # seconds beyond its own cost


class Bench:
    """A checkout with the made-up experiment, done."""

    STAGES = {"compile": CompileRecord, "verify": VerifyRecord, "profile": ProfileRecord}

    def __init__(self, scratch: Path, size: Size) -> None:
        self.checkout: Checkout = benchmark_checkout(scratch / "project")
        self._scratch = scratch
        self.size = size
        declare(self.checkout, size)
        fill = [sys.executable, "-m", "tests.benchmarks.made_up", *OVERRIDES]
        subprocess.run(fill, cwd=self.checkout.folder, env=self.checkout.environment, check=True)

    def snakemake(self, *arguments: str) -> Spent:
        """Run it as a user does."""
        command = [*self.checkout.command(*arguments)] if arguments else self._run()
        return spend(
            command,
            folder=self.checkout.folder,
            environment=self.checkout.environment,
            temporary=self._scratch,
        )

    def _run(self) -> list[str]:
        return self.checkout.command("--config", f"overrides={' '.join(OVERRIDES)}")

    def cost_of(self, before: set[Path]) -> float:
        """Seconds that compile, verify and profile account to the variants that are new in the store."""
        new = self.records() - before
        return sum(read_record(path, self.STAGES[path.parents[2].name]).seconds for path in new)

    def records(self) -> set[Path]:
        """Every variant's record in the store."""
        store = self.checkout.folder / "artifacts" / "store"
        return {path for stage in self.STAGES for path in (store / stage).glob("*/*/record.json")}


def measure(size: Size, repeats: int) -> Section:
    """All runs, in one checkout."""
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        bench = Bench(Path(scratch), size)
        first = bench.snakemake()
        nothing = [bench.snakemake() for _ in range(repeats)]
        assert all("Nothing to be done" in run.output for run in nothing), nothing[0].output
        version = [bench.snakemake("--version") for _ in range(repeats)]
        before = bench.records()
        one_more_value(bench.checkout, size)
        more = bench.snakemake()
        own = bench.cost_of(before)
        new = len(bench.records() - before)
        assert new == 3 * size.workloads, f"{new} new records\n{more.output}"
    return _section(first, nothing, version, more, own, size)


def _section(
    first: Spent, nothing: list[Spent], version: list[Spent], more: Spent, own: float, size: Size
) -> Section:
    idle = statistics.median(run.seconds for run in nothing)
    start = statistics.median(run.seconds for run in version)
    count = f"{size.variants:,} variants in {size.tasks} tasks"
    return Section(
        name=NAME,
        title="Nothing to do, and one more variant",
        command=" ".join(["python -m tests.benchmarks.unchanged", *sys.argv[1:]]),
        measured=measured(),
        figures=(
            Figure(
                what=f"Nothing to do for {count}, beyond `snakemake --version`",
                found=seconds(idle - start),
                aim=f"at most {seconds(NOTHING)}",
                met=idle - start <= NOTHING,
            ),
            Figure(
                what=f"One more variant in {count}, beyond its own cost",
                found=seconds(more.seconds - own),
                aim=f"at most {seconds(ONE_MORE)}",
                met=more.seconds - own <= ONE_MORE,
            ),
        ),
        tables=(
            Table(
                title="Runs",
                heading=("", "wall time", "CPU time of the machine"),
                rows=(
                    ("`snakemake --version`", seconds(start), _cpu(version)),
                    ("nothing to do", seconds(idle), _cpu(nothing)),
                    ("one more variant", seconds(more.seconds), _cpu([more])),
                    ("the variant's own part: compile, verify, profile", seconds(own), ""),
                    (
                        "all variants found in the store, all outputs written",
                        seconds(first.seconds),
                        _cpu([first]),
                    ),
                ),
            ),
        ),
    )


def _cpu(runs: list[Spent]) -> str:
    return seconds(statistics.median(run.cpu_seconds for run in runs))


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    publish(measure(Size(kernels=options.tasks, workloads=1, tunables=2, values=10), options.repeats))


if __name__ == "__main__":
    main()
