"""Is a slow-down of 3 % found? The C++ softmax against itself with 3 % of its rows computed twice.

    python -m tests.benchmarks.slowdown [--percent 3] [--comparisons 40] [--profile thorough]
    python -m tests.benchmarks.slowdown --hardware local      # the softmax in CUDA C++ on the GPU

Both are compiled by the backend and measured by the bench, as variants of a sweep are; each comparison starts
both processes afresh. Prints how often the slowed one is called slower, indistinguishable and faster.
"""

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from pipeline.backends.backend import CompileJob
from pipeline.backends.registry import backend
from pipeline.measure.ceilings.roofline_share import WorkPerCall
from pipeline.measure.comparison.bench import Bench
from pipeline.measure.comparison.bench_task import kernel_task
from pipeline.measure.hosting.measuring_messages import Candidate
from pipeline.plan.plan_cache import current_plan
from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import read_record
from pipeline.records.results.compiled import Compiled
from pipeline.records.results.profiled import Comparison
from pipeline.records.results.variant import Variant
from tests.paths import ROOT


class Subject(NamedTuple):
    """What is slowed, and how."""

    kernel: str
    workload: str
    backend: str
    source: str
    what: str


OF_THE_HOST = Subject(
    "softmax", "bert_base", "cpp", "tests/benchmarks/slowed_softmax.cpp", "% of its rows twice"
)
OF_A_GPU = Subject(
    "softmax", "llama3_8b_layer", "cuda", "tests/benchmarks/slowed_softmax.cu", "% of its blocks twice"
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.slowdown", description=__doc__)
    parser.add_argument("--percent", type=int, default=3)
    parser.add_argument("--comparisons", type=int, default=40)
    parser.add_argument("--profile", default="thorough", help="the preset")
    parser.add_argument("--hardware", default="cpu", help="`local`: the GPU of this machine")
    options = parser.parse_args()
    subject = OF_THE_HOST if options.hardware == "cpu" else OF_A_GPU
    with tempfile.TemporaryDirectory(prefix="km-") as folder:
        overrides = (f"hardware={options.hardware}", f"profile={options.profile}", "profile.baselines=[]")
        found = compare(subject, options.percent, options.comparisons, overrides, Path(folder))
    said = Counter(each.verdict for each in found)
    ratios = [1 / each.speedup.value - 1 for each in found]
    covered = sum(
        1 / each.speedup.high <= 1 + options.percent / 100 <= 1 / each.speedup.low for each in found
    )
    detectable = float(np.median([each.minimum_detectable for each in found]))
    print(
        f"{subject.kernel} with {options.percent} {subject.what}, {subject.workload}, preset"
        f" {options.profile}: of"
        f" {len(found)} comparisons {said['slower']} slower, {said['indistinguishable']} indistinguishable,"
        f" {said['faster']} faster; median slow-down {np.median(ratios):.2%}; {covered} intervals hold"
        f" {options.percent} %; median of the minimum detectable effect {detectable:.1%}"
    )


def compare(
    subject: Subject, percent: int, count: int, overrides: tuple[str, ...], folder: Path
) -> list[Comparison]:
    """So many comparisons of the slowed kernel with the plain one."""
    store = folder / "artifacts"
    chosen = (f"kernel={subject.kernel}", f"workload={subject.workload}")
    plan = current_plan((*chosen, *overrides), root=ROOT, store=store)
    spec = read_record(spec_path(store, "profile", plan.tasks[0].row.profile), ProfileSpec)
    size = float(np.prod([*spec.problem.dimensions.values()]))
    work = WorkPerCall(
        flops=5 * size, read=4 * size, written=4 * size, unit="vector", dtype=spec.problem.element
    )
    # Its processes are forked from this one, in which a compiler may open the driver of a GPU.
    with Bench(kernel_task(spec, work, {}), store, folder) as bench:
        plain = _candidate(subject, spec, folder / "plain", None)
        slowed = _candidate(subject, spec, folder / "slowed", percent)
        return [bench.against(slowed, plain, folder).comparisons[0] for _ in range(count)]


def _candidate(subject: Subject, spec: ProfileSpec, folder: Path, percent: int | None) -> Candidate:
    """The default variant, as it is or slowed."""
    folder.mkdir()
    implementation = spec.implementations[subject.backend]
    tunables = {name: tunable.default for name, tunable in implementation.tunables.items()}
    if percent is not None:
        launch = implementation.launch
        if launch is not None:
            grid = (f"ceil_div(({launch.grid[0]}) * {100 + percent}, 100)",)
            launch = msgspec.structs.replace(launch, grid=grid)
        implementation = msgspec.structs.replace(
            implementation, source=subject.source, entry=f"slowed_{subject.kernel}", launch=launch
        )
        tunables |= {"EXTRA_PERCENT": percent}
    variant = Variant(
        kernel=subject.kernel, implementation=subject.backend, backend=subject.backend, source_digest="",
        attributes=dict(spec.problem.attributes), tunables=tunables,
    )  # fmt: skip
    job = CompileJob(variant=variant, implementation=implementation, problem=spec.problem, target=spec.target)
    compiled = backend(subject.backend).compile(job, ROOT, folder)
    if not isinstance(compiled, Compiled):
        raise SystemExit(f"error: {compiled.reason}")
    return Candidate(job=job, compiled=compiled, root=str(ROOT), folder=str(folder))


if __name__ == "__main__":
    main()
