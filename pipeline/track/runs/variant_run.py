"""Lays a variant's results out as one flat MLflow run: Result in, Run (params, metrics, tags, files) out.

A run of the main experiment is a measured variant, always. What was only compiled, because its device is
absent, goes to an experiment of its own: its registers can be compared across targets there, it can never be
taken for a measurement, and it does not push the measured runs off the UI's first page of a hundred.
"""

import datetime
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from pipeline.performance.diagnosis import diagnose
from pipeline.performance.metrics import metrics_of, signature
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.layout import entry_path, spec_path
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import CompileSpec, GenerateSpec, ProfileSpec, TaskRow, VerifySpec
from pipeline.records.record import Record, digest, digest_bytes, digest_parts, read_record
from pipeline.records.results.collection import Result
from pipeline.records.search.model_attempt import Attempt
from pipeline.store.stored_sources import root_of
from pipeline.track.runs import mlflow_names

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


SOURCES = frozenset({".py", ".cpp", ".cu", ".c", ".hpp", ".h"})
"""Of the files that compile keeps; disassembly and intermediate forms stay in the store."""

LAYOUT = 5
"""Raise it when this module writes something else, apart from the metrics: runs are then logged again."""
FIRST = "speedup."


class Identified(Protocol):
    """A record that knows which variant or candidate it is about."""

    @property
    def id(self) -> str:
        """Of the variant or candidate."""


class VariantRun(Record, frozen=True, kw_only=True):
    """One MLflow run, before it is written."""

    slot: str
    """What is measured: the task's names, the variant, the device and the versions of the tools."""
    result: str
    """Digest of what was found; equal results in one slot are one run."""
    name: str
    params: dict[str, str]
    metrics: dict[str, float]
    tags: dict[str, str]
    files: tuple[tuple[Path, str], ...]
    """File and the folder among the artifacts that it goes to."""
    record: Identified
    """Becomes result.json: all records, whole."""
    documents: dict[str, bytes] = {}
    """Further files among the artifacts, by name."""
    started: int
    """Milliseconds since the epoch: when it was measured, not when it was logged."""
    ended: int


def is_measured(result: Result) -> bool:
    """Whether it is a run of the main experiment."""
    return result.profiled is not None


def is_only_compiled(result: Result) -> bool:
    """Whether it compiled for an absent device; a variant that failed a check is a failure, not this."""
    absent = result.outcome in {Outcome.PASSED, Outcome.DEVICE_UNAVAILABLE}
    return result.compiled is not None and result.profiled is None and absent


def run_of(result: Result, task: TrackedTask, root: Path, named: Collection[str] = ()) -> VariantRun:
    """The run of a variant that was measured or only compiled; its name has the tunables that are `named`."""
    assert result.compile is not None and result.compiled is not None
    last = list(result.records.values())[-1]
    ended = datetime.datetime.fromisoformat(last.provenance.created).timestamp()
    found = [record.result for record in result.records.values()]
    metrics, tags = _entries(result)
    return VariantRun(
        slot=_slot(result, task),
        result=digest([LAYOUT, signature(), found]),
        name=_name(result, named),
        params={
            mlflow_names.key(name): mlflow_names.param(value)
            for name, value in result.variant.tunables.items()
        },
        metrics={mlflow_names.key(name): value for name, value in metrics.items()},
        tags={
            mlflow_names.key(name): mlflow_names.tag(value)
            for name, value in (tags | _provenance(result, task)).items()
        },
        files=tuple(_files(result, task, root)),
        record=result,
        started=round((ended - last.seconds) * 1000),
        ended=round(ended * 1000),
    )


def toolchain(result: Result) -> dict[str, str]:
    """Versions of all that made the result; stages that were made with different ones show both."""
    found: dict[str, dict[str, None]] = {}
    for record in result.records.values():
        for tool, version in record.provenance.toolchain.items():
            found.setdefault(tool, {})[version] = None
    return {tool: "|".join(versions) for tool, versions in sorted(found.items())}


def _slot(result: Result, task: TrackedTask) -> str:
    row = task.row
    where = [row.kernel, row.workload, row.hardware, row.optimization]
    return digest([where, result.id, task.device, toolchain(result), is_measured(result)])


def _name(result: Result, named: Collection[str]) -> str:
    """Kernel, what differs among its runs, then workload, target, implementation: lists cut names off."""
    row, variant = result.task, result.variant
    values = _pairs({name: value for name, value in variant.tunables.items() if name in named})
    written = result.id[:6] if variant.written else ""
    what = " ".join(filter(None, (row.kernel, values, written)))
    return f"{what} · {row.workload} {row.hardware} {variant.implementation}"[: mlflow_names.NAME_LENGTH]


def _entries(result: Result) -> tuple[dict[str, float], dict[str, str]]:
    """Metrics and tags, by their names in MLflow; what the result does not have is left out, never 0."""
    metrics: dict[str, float] = {}
    tags: dict[str, str] = {}
    declared = metrics_of([result])
    # MLflow's compare page preselects the metric that was logged first.
    for metric in sorted(declared, key=lambda each: not each.name.startswith(FIRST)):
        value = metric.value(result)
        if value is None:
            continue
        if metric.is_mlflow_metric:
            number = mlflow_names.number(value)
            if number is not None:
                metrics[metric.mlflow_name] = number * metric.mlflow_scale
        elif text := mlflow_names.param(value):
            tags[metric.mlflow_name] = text
    return metrics, tags


def _provenance(result: Result, task: TrackedTask) -> dict[str, str]:
    """Tags that are no metrics: how to repeat the run, with what it was made, and what limits it."""
    variant = result.variant
    tags = {
        "source": variant.source_digest,
        "overrides": task.overrides,
        "device": result.profiled.device.get("name", "unnamed") if result.profiled else "absent",
        "versions": _pairs(toolchain(result)),
        "status": _status(result),
    }
    if result.source:
        tags |= {f"author/{key}": value for key, value in result.source.author.details.items()}
    if variant.attributes:
        tags["attributes"] = _pairs(variant.attributes)
    if result.verify and result.verified:
        tags["seeds"] = " ".join(str(seed) for seed in result.verify.seeds)
    codes = dict.fromkeys(str(finding.code) for finding in diagnose(result, task.generate))
    if codes:
        tags["diagnosis"] = " ".join(codes)
    if result.origin:
        tags["bundle"] = result.origin.bundle
        tags["environment"] = _pairs(result.origin.environment)
    git = [record.provenance.git for record in result.records.values() if record.provenance.git]
    if git:
        tags["mlflow.source.git.commit"] = git[-1]
    return tags


def _status(result: Result) -> str:
    """`recorded`: measured elsewhere, and replayed here."""
    if result.profiled is None:
        return "compiled_only"
    return "recorded" if result.profiled.recorded else "measured"


def _files(result: Result, task: TrackedTask, root: Path) -> Iterator[tuple[Path, str]]:
    """The binary, and the sources that it was made of."""
    assert result.compile is not None and result.compiled is not None
    folder = entry_path(root, "compile", result.compile.entry)
    compiled = result.compiled
    sources = [name for name in compiled.files if Path(name).suffix in SOURCES]
    for name in (compiled.artifact, *sources):
        yield folder / name, (Path("kernel") / name).parent.as_posix()
    if result.attempt:
        yield from _answers(result.attempt, root)
    if result.variant.written:
        yield from _written(result, root)
    elif not sources and task.compile and result.task.recorded is None:
        path = Path(task.compile.implementations[result.variant.implementation].source)
        if _is_source_of(result, path):
            yield path, (Path("kernel/sources") / path).parent.as_posix()


def _answers(attempt: Attempt, root: Path) -> Iterator[tuple[Path, str]]:
    """Prompts and answers of a language model, in the order in which they were asked."""
    for number, asked in enumerate(attempt.asked):
        folder = entry_path(root, "answers", asked.entry)
        for path in sorted(folder.glob("*.md")) if folder.is_dir() else ():
            yield path, f"agent/{number}_{asked.role}"


def _written(result: Result, root: Path) -> Iterator[tuple[Path, str]]:
    """The written source, next to what the compiler may have kept of it."""
    folder = root_of(result.variant, root)
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file():
            yield path, (Path("kernel/written") / path.relative_to(folder)).parent.as_posix()


def _is_source_of(result: Result, path: Path) -> bool:
    """Whether the repository's file is, still and alone, what the variant was compiled from."""
    if not path.is_file():
        return False
    digests = {path.as_posix(): digest_bytes(path.read_bytes())}
    return digest_parts(digests) == result.variant.source_digest


def _pairs(values: Mapping[str, TunableValue]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())
