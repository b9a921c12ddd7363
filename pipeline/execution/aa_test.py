"""A/A test: how often is a kernel called faster or slower than itself? Overrides in, a table out.

Each comparison starts both processes afresh, as two runs of a sweep would. One variant of each implementation
(its default one, if that verified) is compared with itself; every other verdict is a false alarm.
"""

import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.execution.workflow import ROOT
from pipeline.measure.comparison.bench import Bench
from pipeline.measure.comparison.bench_task import kernel_task
from pipeline.measure.comparison.round_summary import Unstable
from pipeline.measure.hosting.process_handle import MemberGone
from pipeline.performance.submission_scores import proportion
from pipeline.plan.plan_cache import current_plan
from pipeline.records.errors import KernelmillError
from pipeline.records.layout import output_path, spec_path
from pipeline.records.outcome import Outcome
from pipeline.records.planning.planned_tasks import PlannedTask
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.record import Record, read_record
from pipeline.records.results.compiled import CompileOutput
from pipeline.records.results.profiled import Comparison, Verdict
from pipeline.records.results.verified import VerifyOutput
from pipeline.stages.profile import ProfileSubject, subjects

TAIL = 0.025


class Row(Record, frozen=True, kw_only=True):
    """All comparisons of one variant with itself."""

    kernel: str
    workload: str
    implementation: str
    comparisons: tuple[Comparison, ...]
    failures: dict[str, int]
    """Outcome -> how many comparisons ended so."""

    @property
    def alarms(self) -> int:
        """Verdicts other than `indistinguishable`."""
        return sum(each.verdict != "indistinguishable" for each in self.comparisons)


def compare_all(overrides: Sequence[str], count: int) -> list[Row]:
    """Of each variant of each task `count` comparisons."""
    return [row for task in _tasks(overrides) for row in compare(task, count)]


def compare(task: PlannedTask, count: int) -> Iterator[Row]:
    """Compare each implementation's default variant with itself."""
    row = task.row
    spec = read_record(spec_path(ROOT, "profile", row.profile), ProfileSpec)
    verified = read_record(output_path(ROOT, "verify", row.verify, 0), VerifyOutput)
    compiled = read_record(output_path(ROOT, "compile", row.compile, 0), CompileOutput)
    found = subjects(spec, verified, compiled, ROOT)
    if not found:
        raise KernelmillError(f"{row.kernel} on {row.workload}: no variant verified, so none can be measured")
    for subject in found:
        yield _row(spec, subject, task, count)


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Markdown: false alarms with their 95 % interval, and how precise the comparisons were."""
    yield "| kernel | workload | implementation | comparisons | faster | slower | false alarms | interval |"
    yield "|---|---|---|---:|---:|---:|---:|---|"
    total = Counter[Verdict]()
    for row in rows:
        said = Counter(each.verdict for each in row.comparisons)
        total.update(said)
        names = f"| {row.kernel} | {row.workload} | {row.implementation} "
        yield names + _counts(said)
    if len(rows) > 1:
        yield "| all | | " + _counts(total)
    widths = sorted(each.minimum_detectable or math.nan for row in rows for each in row.comparisons)
    if widths:
        yield ""
        yield f"Median of the minimum detectable effect: {widths[len(widths) // 2]:.1%}."
        again = sum(len(each.timing.processes) > 1 for row in rows for each in row.comparisons)
        number = sum(len(row.comparisons) for row in rows)
        yield f"{again} of {number} were made in several processes: one saw a difference, or all are."
        yield _balance([each.speedup.value for row in rows for each in row.comparisons])
    for row in rows:
        for outcome, number in row.failures.items():
            yield f"{row.kernel} ({row.implementation}): {number} comparisons ended as {outcome}."


def _balance(speedups: Sequence[float]) -> str:
    """Whether the process that starts first, the one compared with, has an advantage: a sign test."""
    above = sum(each > 1 for each in speedups) + sum(each == 1 for each in speedups) // 2
    low, high = fair_coin(len(speedups))
    median = sorted(speedups)[len(speedups) // 2]
    judged = "it shows no advantage" if low <= above <= high else "that is more than chance"
    return (
        f"Time of the process that starts first over the other's: median {median:.4f}, {above} of "
        f"{len(speedups)} above 1, {low} to {high} for a fair coin (95 %): {judged}."
    )


def fair_coin(tosses: int) -> tuple[int, int]:
    """Numbers of heads of which all others have less than 5 % together, half of that on either side."""
    known, low = 0.0, 0
    while (known := known + math.comb(tosses, low) / 2**tosses) <= TAIL:
        low += 1
    return low, tosses - low


def _counts(said: Counter[Verdict]) -> str:
    number = sum(said.values())
    alarms = number - said["indistinguishable"]
    if not number:
        return "| 0 | 0 | 0 | – | – |"
    low, high = proportion(alarms, number)
    share = f"{alarms / number:.1%} | {low:.1%} to {high:.1%} |"
    return f"| {number} | {said['faster']} | {said['slower']} | {share}"


def _tasks(overrides: Sequence[str]) -> list[PlannedTask]:
    """The tasks whose device is here, verified."""
    plan = current_plan(tuple(overrides), root=Path.cwd(), store=ROOT)
    tasks = [task for task in plan.tasks if task.row.device_present]
    if not tasks:
        raise KernelmillError("no task of this plan has its device in this machine: nothing can be measured")
    files = [str(output_path(ROOT, "verify", task.row.verify, 0)) for task in tasks]
    config = [f"overrides={' '.join(overrides)}"] if overrides else []
    command = ["--cores", "all", *files, *(["--config", *config] if config else [])]
    if subprocess.run([sys.executable, "-m", "snakemake", *command], check=False).returncode != 0:
        raise KernelmillError("verify did not end: see above")
    return tasks


def _row(spec: ProfileSpec, subject: ProfileSubject, task: PlannedTask, count: int) -> Row:
    comparisons: list[Comparison] = []
    failures = Counter[str]()
    with (
        tempfile.TemporaryDirectory(prefix="kernelmill-") as scratch,
        Bench(kernel_task(spec, subject.work, {}), ROOT, Path(scratch)) as bench,
    ):
        for _ in range(count):
            try:
                measured = bench.against(subject.candidate, subject.candidate, Path(scratch))
                comparisons += measured.comparisons
            except MemberGone as gone:
                failures[gone.outcome] += 1
            except Unstable:
                failures[Outcome.UNSTABLE_TIMING] += 1
    return Row(
        kernel=task.row.kernel,
        workload=task.row.workload,
        implementation=subject.implementation,
        comparisons=tuple(comparisons),
        failures=dict(failures),
    )
