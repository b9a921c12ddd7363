"""One variant of softmax through the stages of a run: compiled, verified, profiled.

Without a device it is compiled for one that is declared, and verified in an interpreter or emulator.
"""

import os
import sys
from pathlib import Path

from pipeline.execution.device_check.check_processes import CheckSetting
from pipeline.execution.device_check.check_report import CheckAnswer
from pipeline.execution.device_check.checked_machine import target_here
from pipeline.execution.kernel_check import ABSENT_GPU
from pipeline.execution.stage_commands import Command, StageCommands, run_all
from pipeline.performance.quantities import baseline, seconds
from pipeline.plan.plan_cache import current_plan
from pipeline.records.outcome import Failure
from pipeline.records.planning.planned_tasks import Plan
from pipeline.records.results.profiled import Profiled
from pipeline.records.results.variant import Generated
from pipeline.stages.table import STAGES, read_round, rounds

KERNEL = "softmax"
LAUNCHES = {"launched": "never", "as a graph": "always"}
"""How a call gets to the device -> value of `profile.cuda_graph`."""
SEPARATOR = ", "
_LOG_LETTERS = 2000


def check_kernel_stages(setting: CheckSetting) -> CheckAnswer:
    """The default variant of a backend; the subject is `BACKEND, LAUNCH`."""
    backend, _, launch = setting.subject.partition(SEPARATOR)
    present = setting.device is not None
    if present:
        target_here(setting)
    elif launch != next(iter(LAUNCHES)):
        return CheckAnswer(status="absent", detail=setting.absence)
    store = Path(setting.folder) / "store"
    plan = current_plan(_overrides(backend, launch, present=present), root=Path.cwd(), store=store)
    if not plan.tasks:
        return CheckAnswer(status="absent", detail="; ".join(map(str, plan.pruned)))
    failure = _run(plan, store, measured=present)
    if failure is not None:
        return CheckAnswer(status="failed", detail=failure)
    if not present:
        target = f"compiled for {ABSENT_GPU} and verified on the CPU"
        return CheckAnswer(status="absent", detail=f"{setting.absence}; {target}")
    return _measured(plan, store)


def _overrides(backend: str, launch: str, *, present: bool) -> tuple[str, ...]:
    return (
        f"kernel={KERNEL}",
        f"workload={'llama3_8b_decode' if present else 'awkward'}",
        f"hardware={'local' if present else ABSENT_GPU}",
        "optimization=defaults",
        f"optimization.implementations=[{backend}]",
        "verify=fast",
        "profile=quick",
        "profile.baselines=[eager]",
        f"profile.cuda_graph={LAUNCHES[launch]}",
        "tracking=disabled",
    )


def _run(plan: Plan, store: Path, *, measured: bool) -> str | None:
    """Stage by stage until one fails; why it did."""
    (task,) = plan.tasks
    stages = StageCommands(store, len(os.sched_getaffinity(0)))
    for stage in rounds():
        if stage.name == "profile" and not measured:
            continue
        command = stages.of_round(stage.name, task, 0)
        if not command.done:
            (ended,) = run_all([command], cores=command.cores, deadline=None, say=_say)
            if ended.error:
                _show_log(command)
                return ended.error
        failure = _failure(stage.name, Path(str(command.output)))
        if failure is not None:
            _show_log(command)
            return f"{stage.name}: {failure.outcome}: {failure.reason}"
    return None


def _failure(stage: str, output: Path) -> Failure | None:
    """Of the first variant that did not pass a stage."""
    found = read_round(stage, output)
    if isinstance(found, Generated):
        return None
    return next((each.result for each in found.records if isinstance(each.result, Failure)), None)


def _measured(plan: Plan, store: Path) -> CheckAnswer:
    """Time, speed-up, launch cost."""
    (task,) = plan.tasks
    output = read_round("profile", STAGES["profile"].output_path(store, task.row.profile, 0))
    assert not isinstance(output, Generated)
    found = [each.result for each in output.records if isinstance(each.result, Profiled)]
    if not found:
        return CheckAnswer(status="failed", detail="profile measured no variant")
    (result,) = found
    figures = {
        "time": seconds(result.time.value),
        "launch": str(result.timing.launch),
        "notes": "; ".join(result.notes),
        **{f"device {name}": text for name, text in result.device.items()},
    }
    if result.timing.host_seconds is not None:
        figures["host"] = seconds(result.timing.host_seconds)
    for each in result.comparisons:
        interval = each.speedup
        figures[f"speed-up over {baseline(each.baseline)}"] = (
            f"{interval.value:.3f} ({interval.low:.3f} – {interval.high:.3f})"
        )
        figures[f"launch of {baseline(each.baseline)}"] = str(each.timing.launch)
    figures |= {f"absent {each.baseline}": each.reason for each in result.absent}
    figures |= {f"absent {each.quantity}": each.reason for each in result.unmeasured}
    words = ("time", "host", "launch")
    parts = [f"{name} {figures[name]}" for name in words if name in figures]
    parts += [f"{name} {text}" for name, text in figures.items() if name.startswith("speed-up")]
    failed = [reason for name, reason in figures.items() if name == "absent eager"]
    if failed:
        return CheckAnswer(status="failed", detail=f"eager PyTorch: {failed[0]}", figures=figures)
    return CheckAnswer(status="ok", detail="; ".join(parts), figures=figures)


def _show_log(command: Command) -> None:
    path = Path(command.log)
    if path.is_file():
        print(path.read_text(errors="replace")[-_LOG_LETTERS:], flush=True)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
