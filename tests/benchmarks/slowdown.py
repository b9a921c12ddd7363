"""Is a slow-down of 3 % found? The C++ softmax against itself with 3 % of its rows computed twice.

    python -m tests.benchmarks.slowdown [--percent 3] [--comparisons 40] [--profile thorough]

Both are compiled by the backend and measured by the bench, as variants of a sweep are; each comparison starts
both processes afresh. Prints how often the slowed one is called slower, indistinguishable and faster.
"""

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np

from pipeline.backends.backend import CompileJob
from pipeline.backends.cpp import Cpp
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

SOURCE = "tests/benchmarks/slowed_softmax.cpp"
WORKLOAD = "bert_base"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.slowdown", description=__doc__)
    parser.add_argument("--percent", type=int, default=3)
    parser.add_argument("--comparisons", type=int, default=40)
    parser.add_argument("--profile", default="thorough", help="the preset")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="km-") as folder:
        found = compare(options.percent, options.comparisons, options.profile, Path(folder))
    said = Counter(each.verdict for each in found)
    ratios = [1 / each.speedup.value - 1 for each in found]
    covered = sum(
        1 / each.speedup.high <= 1 + options.percent / 100 <= 1 / each.speedup.low for each in found
    )
    detectable = float(np.median([each.minimum_detectable for each in found]))
    print(
        f"softmax with {options.percent} % of its rows twice, {WORKLOAD}, preset {options.profile}: of"
        f" {len(found)} comparisons {said['slower']} slower, {said['indistinguishable']} indistinguishable,"
        f" {said['faster']} faster; median slow-down {np.median(ratios):.2%}; {covered} intervals hold"
        f" {options.percent} %; median of the minimum detectable effect {detectable:.1%}"
    )


def compare(percent: int, count: int, profile: str, folder: Path) -> list[Comparison]:
    """So many comparisons of the slowed kernel with the plain one."""
    store = folder / "artifacts"
    overrides = ("kernel=softmax", f"workload={WORKLOAD}", "hardware=cpu", f"profile={profile}")
    plan = current_plan((*overrides, "profile.baselines=[]"), root=ROOT, store=store)
    spec = read_record(spec_path(store, "profile", plan.tasks[0].row.profile), ProfileSpec)
    plain = _candidate(spec, folder / "plain", None)
    slowed = _candidate(spec, folder / "slowed", percent)
    size = float(np.prod([*spec.problem.dimensions.values()]))
    work = WorkPerCall(
        flops=5 * size, read=4 * size, written=4 * size, unit="vector", dtype=spec.problem.element
    )
    with Bench(kernel_task(spec, work, {}), store, folder) as bench:
        return [bench.against(slowed, plain, folder).comparisons[0] for _ in range(count)]


def _candidate(spec: ProfileSpec, folder: Path, percent: int | None) -> Candidate:
    """The default variant, as it is or slowed."""
    folder.mkdir()
    implementation = spec.implementations["cpp"]
    tunables = {name: tunable.default for name, tunable in implementation.tunables.items()}
    if percent is not None:
        implementation = msgspec.structs.replace(implementation, source=SOURCE, entry="slowed_softmax")
        tunables |= {"EXTRA_PERCENT": percent}
    variant = Variant(
        kernel="softmax", implementation="cpp", backend="cpp", source_digest="", attributes={},
        tunables=tunables,
    )  # fmt: skip
    job = CompileJob(variant=variant, implementation=implementation, problem=spec.problem, target=spec.target)
    compiled = Cpp().compile(job, ROOT, folder)
    if not isinstance(compiled, Compiled):
        raise SystemExit(f"error: {compiled.reason}")
    return Candidate(job=job, compiled=compiled, root=str(ROOT), folder=str(folder))


if __name__ == "__main__":
    main()
