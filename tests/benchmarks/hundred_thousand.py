"""100,000 variants planned, deduplicated and aggregated: seconds, and the memory of all processes.

    python -m tests.benchmarks.hundred_thousand [--kernels 10] [--workloads 10]

The variants are made up (`tests.benchmarks.made_up`): each kernel has 1,000 of them, and runs on each
workload. Measured are the plan, the stages generate and compile of all tasks, where every workload finds the
artifacts of the first one (a C++ artifact does not depend on the shape), and aggregate over all results.

    python -m tests.benchmarks.hundred_thousand --stage NAME OVERRIDE…   (in the checkout: one of its steps)
"""

import argparse
import sys
import tempfile
from pathlib import Path

from pipeline.plan.plan_cache import current_plan
from pipeline.records.layout import output_path, spec_path
from pipeline.records.record import to_json
from pipeline.records.results.compiled import CompileRecord
from pipeline.records.results.profiled import ProfileOutput, ProfileRecord
from pipeline.records.results.verified import VerifyOutput, VerifyRecord
from pipeline.stages import compile as compiling
from pipeline.stages import generate as generating
from pipeline.store.atomic import write_atomic
from tests.benchmarks.figures import Figure, Section, Table, measured, publish, seconds
from tests.benchmarks.made_up import EXPERIMENT, ROOT, Copies, Size, declare, put
from tests.benchmarks.sweeps import benchmark_checkout
from tests.benchmarks.tree import Spent, spend

NAME = "hundred_thousand"
OVERRIDES = (f"experiment={EXPERIMENT}", "tracking=disabled")
MEMORY = 4 << 30  # bytes
STEPS = {
    "plan": "plan: the tasks and the specs of their stages",
    "deduplicate": "generate and compile of all tasks, every artifact in the store",
    "aggregate": "aggregate: tables, winners, effects, summary",
}


def measure(size: Size) -> Section:
    """Each step in a process of its own; making up the results in between is not counted."""
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        checkout = benchmark_checkout(Path(scratch) / "project")
        declare(checkout, size)

        def step(name: str) -> Spent:
            command = [sys.executable, "-m", "tests.benchmarks.hundred_thousand", "--stage", name, *OVERRIDES]
            return spend(
                command,
                folder=checkout.folder,
                environment=checkout.environment,
                temporary=Path(scratch),
                watch=True,
            )

        spent = {"plan": step("plan")}
        step("artifacts")
        spent["deduplicate"] = step("deduplicate")
        step("results")
        spent["aggregate"] = step("aggregate")
    return _section(spent, size)


def _section(spent: dict[str, Spent], size: Size) -> Section:
    peak = max(each.peak or 0 for each in spent.values())
    return Section(
        name=NAME,
        title=f"{size.variants:,} variants planned, deduplicated and aggregated",
        command=" ".join(["python -m tests.benchmarks.hundred_thousand", *sys.argv[1:]]),
        measured=measured(),
        figures=(
            Figure(
                what=f"{size.variants:,} variants in {size.tasks} tasks planned, deduplicated and aggregated",
                found=f"{_gigabytes(peak)}, {seconds(sum(each.seconds for each in spent.values()))}",
                aim=f"at most {_gigabytes(MEMORY)}",
                met=peak <= MEMORY,
            ),
        ),
        tables=(
            Table(
                title="Steps",
                heading=("", "wall time", "CPU time", "peak memory of all processes"),
                rows=tuple(
                    (
                        title,
                        seconds(spent[name].seconds),
                        seconds(spent[name].cpu_seconds),
                        _gigabytes(spent[name].peak or 0),
                    )
                    for name, title in STEPS.items()
                ),
            ),
        ),
    )


def _gigabytes(value: int) -> str:
    return f"{value / (1 << 30):.2f} GiB"


def run_step(name: str, overrides: tuple[str, ...]) -> None:
    """One step, in the checkout."""
    plan = current_plan(overrides, root=Path.cwd(), store=ROOT)
    if name == "aggregate":
        from pipeline.stages import aggregate

        spec = spec_path(ROOT, "aggregate", plan.aggregate)
        out = ROOT / "aggregate" / plan.aggregate / "summary.json"
        assert aggregate.main(["--spec", str(spec), "--out", str(out)]) == 0
        return
    if name == "plan":
        return
    copies = None if name == "deduplicate" else Copies(plan.tasks[0])
    for task in plan.tasks:
        row = task.row
        if copies is None:
            generated = output_path(ROOT, "generate", row.generate, 0)
            spec = spec_path(ROOT, "generate", row.generate)
            assert generating.main(["--spec", str(spec), "--out", str(generated)]) == 0
            spec, out = spec_path(ROOT, "compile", row.compile), output_path(ROOT, "compile", row.compile, 0)
            paths = ["--spec", str(spec), "--variants", str(generated), "--out", str(out)]
            assert compiling.main(paths) == 0
        elif name == "artifacts":
            for compiled in copies.compiled(task) if row.workload == plan.tasks[0].row.workload else ():
                put("compile", compiled)
        else:
            records = list(copies.outputs(task))
            _write("verify", row.verify, VerifyOutput, [verified for verified, _ in records])
            _write("profile", row.profile, ProfileOutput, [profiled for _, profiled in records])


def _write(
    stage: str, key: str, kind: type, records: list[CompileRecord] | list[VerifyRecord] | list[ProfileRecord]
) -> None:
    write_atomic(output_path(ROOT, stage, key, 0), to_json(kind(key=key, round=0, records=tuple(records))))


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", type=int, default=10)
    parser.add_argument("--workloads", type=int, default=10)
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("overrides", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        run_step(options.stage, tuple(options.overrides))
    else:
        publish(measure(Size(kernels=options.kernels, workloads=options.workloads, tunables=3, values=10)))


if __name__ == "__main__":
    main()
