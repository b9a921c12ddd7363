"""Whether a kernel is right: its name in, outcomes with checks and reasons out, in seconds.

The stages generate, compile and verify run as in a run, on the same store, without Snakemake and tables.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pipeline.execution.failure_listing import SHOWN, FailureReason, failure_lines, find_outcome
from pipeline.execution.recovery import recover
from pipeline.execution.run_results import aligned
from pipeline.execution.stage_commands import Command, StageCommands, run_all
from pipeline.execution.workflow import LOCK, ROOT
from pipeline.performance.quantities import counted
from pipeline.plan.local_machine import read_machine
from pipeline.plan.plan_cache import current_plan
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.planned_tasks import Plan, PlannedTask
from pipeline.records.record import Record
from pipeline.records.results.compiled import CompileOutput, CompileRecord
from pipeline.records.results.verified import CheckResult, Verified, VerifyOutput, VerifyRecord
from pipeline.stages.table import read_round
from pipeline.store.run_lock import take_lock

CHECKED_BY = ("generate", "compile", "verify")
SMALL = "awkward"
"""Workload of odd and small dimensions, which meets every remainder loop."""
ABSENT_GPU = "h200"
"""Target of kernels for GPUs on a machine without one: they run in an interpreter or emulator."""


class KernelCheckRequest(Record, frozen=True, kw_only=True):
    """What is checked, and how."""

    kernel: str
    workload: str = SMALL
    hardware: str | None = None
    """None: the CPU, and the GPU of this machine or its stand-in."""
    verify: str = "fast"
    every: bool = False
    """All variants, not only the default one of each implementation."""
    overrides: tuple[str, ...] = ()


class CheckedVariant(Record, frozen=True, kw_only=True):
    """One variant on one hardware target."""

    implementation: str
    hardware: str
    tunables: str
    where: str
    """`cpu`, `interpreter`, …; empty if it did not compile."""
    outcome: Outcome
    reason: str
    share: float | None
    """Largest error as a share of its bound."""
    checks: tuple[CheckResult, ...]
    seconds: float


class KernelCheck(Record, frozen=True, kw_only=True):
    """What the check came to."""

    request: KernelCheckRequest
    workloads: tuple[str, ...]
    """Those that were composed: an override may choose another one."""
    variants: tuple[CheckedVariant, ...]
    failures: tuple[FailureReason, ...]
    failed_jobs: tuple[str, ...]
    """Stages that ended without an output: what, why, log."""
    pruned: tuple[str, ...]
    """Targets for which there is nothing to check, each with its reason."""

    @property
    def passed(self) -> bool:
        """Whether everything that was tried is right, and something was tried."""
        fine = all(each.outcome is Outcome.PASSED for each in self.variants)
        return fine and bool(self.variants) and not self.failed_jobs


def check_kernel(request: KernelCheckRequest, *, quiet: bool) -> KernelCheck:
    """Plan, compile, verify.

    Raises
    ------
    ConfigError
        A name is unknown, a yaml is wrong, or the kernel has nothing that runs on the hardware.
    """
    plan = current_plan(_overrides(request), root=Path.cwd(), store=ROOT)
    with take_lock(LOCK):
        recover(plan, ROOT)
        failed = _run(plan, quiet=quiet)
    return KernelCheck(
        request=request,
        workloads=tuple(dict.fromkeys(task.row.workload for task in plan.tasks)),
        variants=tuple(each for task in plan.tasks for each in _variants(task)),
        failures=find_outcome(plan, ROOT).failures,
        failed_jobs=failed,
        pruned=tuple(map(str, plan.pruned)),
    )


def _overrides(request: KernelCheckRequest) -> tuple[str, ...]:
    gpu = "local" if read_machine().accelerator is not None else ABSENT_GPU
    return (
        f"kernel={request.kernel}",
        f"workload={request.workload}",
        f"hardware={request.hardware or f'cpu,{gpu}'}",
        f"optimization={'full' if request.every else 'defaults'}",
        f"verify={request.verify}",
        *request.overrides,
    )


def _run(plan: Plan, *, quiet: bool) -> tuple[str, ...]:
    """Stage by stage, tasks side by side; what failed."""
    cores = len(os.sched_getaffinity(0))
    stages = StageCommands(ROOT, cores)
    failed: list[str] = []
    for stage in CHECKED_BY:
        commands = {each.output: each for each in (stages.of_round(stage, task, 0) for task in plan.tasks)}
        todo = [each for each in commands.values() if not each.done and _has_inputs(each)]
        logs = {each.key: each.log for each in todo}
        ended = run_all(todo, cores=cores, deadline=None, say=(lambda _: None) if quiet else _say)
        failed += [
            f"{each.stage} {each.key}: {each.error} (log: {logs[each.key]})" for each in ended if each.error
        ]
    return tuple(failed)


def _has_inputs(command: Command) -> bool:
    return all(Path(path).is_file() for path in command.inputs)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _variants(task: PlannedTask) -> list[CheckedVariant]:
    stages = StageCommands(ROOT, 1)
    paths = {stage: stages.of_round(stage, task, 0).output for stage in CHECKED_BY[1:]}
    read = {
        stage: read_round(stage, Path(path)) if path is not None and Path(path).is_file() else None
        for stage, path in paths.items()
    }
    compiled, verified = read["compile"], read["verify"]
    found: list[CompileRecord | VerifyRecord] = []
    if isinstance(compiled, CompileOutput):
        found += [each for each in compiled.records if isinstance(each.result, Failure)]
    if isinstance(verified, VerifyOutput):
        found += verified.records
    return [_checked(task, each) for each in found]


def _checked(task: PlannedTask, record: CompileRecord | VerifyRecord) -> CheckedVariant:
    result = record.result
    failure = result if isinstance(result, Failure) else None
    return CheckedVariant(
        implementation=record.variant.implementation,
        hardware=task.row.hardware,
        tunables=" ".join(f"{name}={value}" for name, value in record.variant.tunables.items()),
        where=record.where if isinstance(record, VerifyRecord) else "",
        outcome=failure.outcome if failure else Outcome.PASSED,
        reason=failure.reason if failure else "",
        share=result.worst_share if isinstance(result, Verified) else None,
        checks=record.checks if isinstance(record, VerifyRecord) else (),
        seconds=record.seconds,
    )


def check_text(check: KernelCheck) -> str:
    """A table of variants, the checks that judged them, reasons, and a verdict."""
    request = check.request
    workloads = ", ".join(check.workloads)
    lines = [f"{request.kernel}, workload {workloads}, checks {request.verify}", ""]
    if check.variants:
        lines += aligned([_HEADING, *map(_row, check.variants)])
        lines += ["", *_checks(check.variants)]
    lines += [f"left out: {line}" for line in check.pruned if not check.variants]
    lines += [f"error: {line}" for line in check.failed_jobs]
    lines += failure_lines(check.failures)
    passed = sum(each.outcome is Outcome.PASSED for each in check.variants)
    known = f"{passed} of {counted(len(check.variants), 'variant')} passed"
    lines.append(f"INCOMPLETE: {known}" if check.failed_jobs and not check.passed else known)
    return "\n".join(lines)


_HEADING = ("implementation", "hardware", "ran in", "outcome", "error/bound", "seconds", "variant")


def _row(variant: CheckedVariant) -> tuple[str, ...]:
    share = "-" if variant.share is None else f"{variant.share:.2g}"
    return (
        variant.implementation,
        variant.hardware,
        variant.where or "-",
        variant.outcome.value,
        share,
        f"{variant.seconds:.1f}",
        variant.tunables or "no tunables",
    )


def _checks(variants: Sequence[CheckedVariant]) -> list[str]:
    """How many calls of a variant passed each check before one failed, a line for each that failed."""
    lines = []
    for each in variants:
        passed = ", ".join(f"{check.check} {check.cases}" for check in each.checks if check.cases)
        if each.outcome is not Outcome.PASSED and passed:
            name = " ".join(filter(None, (each.implementation, each.hardware, each.tunables)))
            lines.append(f"  {name}: calls that passed each check before it failed: {passed}")
    left = len(lines) - SHOWN
    more = [f"  … and {counted(left, 'variant')} more"] if left > 0 else []
    return [*lines[:SHOWN], *more, ""] if lines else []
