"""A task as the tracking sees it: TaskRow and the plan's specs in, what every run of the task shares out."""

from pathlib import Path
from typing import TypeVar

from pipeline.records.layout import spec_path
from pipeline.records.planning.specs import CompileSpec, GenerateSpec, ProfileSpec, TaskRow, VerifySpec
from pipeline.records.record import Record, read_record

Spec = TypeVar("Spec", GenerateSpec, CompileSpec, VerifySpec, ProfileSpec)


class TrackedTask(Record, frozen=True, kw_only=True):
    """What every run of a task shares."""

    row: TaskRow
    generate: GenerateSpec | None
    """None where the plan's file is not at hand; the run is then not reproducible from itself."""
    compile: CompileSpec | None
    verify: VerifySpec | None
    profile: ProfileSpec | None

    @property
    def device(self) -> str:
        """Fingerprint of what measures."""
        return self.profile.device if self.profile else "unknown"

    @property
    def overrides(self) -> str:
        """What to pass to `kernelmill run` to get this task."""
        row = self.row
        chosen = {
            "kernel": row.kernel,
            "workload": row.workload.partition("[")[0],  # what follows is in `varied`
            "hardware": row.hardware,
            "optimization": row.optimization,
            "search": row.search,
        }
        if self.verify:
            chosen["verify"] = self.verify.settings.name
        if self.profile:
            chosen["profile"] = self.profile.settings.name
        if self.compile and self.compile.recorded:
            file = self.compile.recorded
            chosen["hardware.recorded"] = file.path
            chosen |= {"kernel.space": file.space} if file.space else {}
        given = {line.partition("=")[0] for line in row.varied}
        kept = (f"{group}={name}" for group, name in chosen.items() if group not in given)
        return " ".join([*kept, *row.varied])

    @property
    def name(self) -> str:
        """The task's names in one word; what it is called across changes of its content."""
        return "/".join((self.row.kernel, self.row.workload, self.row.hardware, self.row.optimization))

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.row.kernel} · {self.row.workload} · {self.row.hardware} · {self.row.optimization}"


def read_task(row: TaskRow, root: Path) -> TrackedTask:
    """The task with its specs, as far as the plan is at hand."""

    def spec(stage: str, kind: type[Spec]) -> Spec | None:
        path = spec_path(root, stage, getattr(row, stage))
        return read_record(path, kind) if path.is_file() else None

    return TrackedTask(
        row=row,
        generate=spec("generate", GenerateSpec),
        compile=spec("compile", CompileSpec),
        verify=spec("verify", VerifySpec),
        profile=spec("profile", ProfileSpec),
    )
