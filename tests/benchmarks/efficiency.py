"""Parallel efficiency of compile: its time with one process over twice its time with two.

    python -m tests.benchmarks.efficiency [--variants 64] [--repeats 2]

The stage's own function compiles Triton variants into empty stores, by turns with one process and with two,
in this process, which has imported the compiler: what is left is the work itself. A pool of bare processes
that does the same beside it shows what the machine loses with both cores busy (caches, memory, clock).
"""

import argparse
import concurrent.futures
import contextlib
import importlib
import io
import multiprocessing
import statistics
import sys
import tempfile
import time
from pathlib import Path

from pipeline.backends.backend import CompileJob
from pipeline.backends.registry import backend
from pipeline.plan.plan_cache import current_plan
from pipeline.records.environment import forget_compiler_settings
from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import CompileSpec, GenerateSpec
from pipeline.records.record import read_record, to_json
from pipeline.records.results.variant import Generated
from pipeline.stages.compile import compile_round
from pipeline.stages.generate import generate
from tests.benchmarks.bare import compile_one
from tests.benchmarks.figures import ROOT, Figure, Section, Table, measured, publish, seconds

NAME = "efficiency"
OVERRIDES = (
    "kernel=matmul workload=llama3_8b_prefill hardware=h200 optimization=full "
    "optimization.implementations=[triton] tracking=disabled search=random"
)
AIM = 0.90
CORES = 2


class Compiles:
    """The compiles of one task."""

    def __init__(self, variants: int, folder: Path) -> None:
        lines = (*OVERRIDES.split(), f"search.variants_per_round={variants}")
        (task,) = current_plan(lines, root=ROOT, store=folder).tasks
        key = task.row.generate
        self._folder = folder
        self._spec = spec_path(folder, "compile", task.row.compile)
        self._variants = folder / "variants.json"
        spec = read_record(spec_path(folder, "generate", key), GenerateSpec)
        self.generated: Generated = generate(spec, [], key=key, round_number=0)
        self._variants.write_bytes(to_json(self.generated))

    def by_stage(self, workers: int) -> float:
        """Seconds of the compile stage on an empty store."""
        with tempfile.TemporaryDirectory(dir=self._folder) as root:
            options = argparse.Namespace(
                spec=self._spec,
                variants=self._variants,
                out=Path(root) / "out.json",
                root=Path(root),
                workers=workers,
            )
            started = time.perf_counter()
            with contextlib.redirect_stderr(io.StringIO()):
                compile_round(options)
            return time.perf_counter() - started

    def by_pool(self, workers: int) -> float:
        """Seconds of a pool of bare processes."""
        spec = read_record(self._spec, CompileSpec)
        jobs = [
            CompileJob(
                variant=variant,
                implementation=spec.implementations[variant.implementation],
                problem=spec.problem,
                target=spec.target,
            )
            for variant in self.generated.variants
        ]
        context = multiprocessing.get_context("fork")
        with tempfile.TemporaryDirectory(dir=self._folder) as root:
            folders = [Path(root) / str(number) for number in range(len(jobs))]
            started = time.perf_counter()
            with concurrent.futures.ProcessPoolExecutor(workers, mp_context=context) as pool:
                list(pool.map(compile_one, jobs, folders))
            return time.perf_counter() - started


def measure(variants: int, repeats: int) -> Section:
    """Both with one process and with two, by turns."""
    forget_compiler_settings()
    for module in backend("triton").preload:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory(prefix="km-") as scratch:
        compiles = Compiles(variants, Path(scratch))
        found: dict[tuple[str, int], list[float]] = {}
        for turn in range(repeats):
            for workers in (1, CORES) if turn % 2 == 0 else (CORES, 1):
                found.setdefault(("stage", workers), []).append(compiles.by_stage(workers))
                found.setdefault(("pool", workers), []).append(compiles.by_pool(workers))
        times = {key: statistics.median(values) for key, values in found.items()}
        count = len(compiles.generated.variants)
    efficiency = {who: times[who, 1] / (CORES * times[who, CORES]) for who in ("stage", "pool")}
    names = {"stage": "compile stage", "pool": "pool of bare processes"}
    return Section(
        name=NAME,
        title="Parallel efficiency of compile",
        command=" ".join(["python -m tests.benchmarks.efficiency", *sys.argv[1:]]),
        measured=measured(),
        figures=(
            Figure(
                what=f"Parallel efficiency of compile on {CORES} cores, {count} Triton variants for h200",
                found=f"{efficiency['stage']:.0%}",
                aim=f"at least {AIM:.0%}",
                met=efficiency["stage"] >= AIM,
            ),
        ),
        tables=(
            Table(
                title=f"Medians of {repeats} turns",
                heading=("", "one process", f"{CORES} processes", "efficiency"),
                rows=tuple(
                    (
                        name,
                        seconds(times[who, 1]),
                        seconds(times[who, CORES]),
                        f"{efficiency[who]:.1%}",
                    )
                    for who, name in names.items()
                ),
            ),
        ),
    )


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variants", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    publish(measure(options.variants, options.repeats))


if __name__ == "__main__":
    main()
