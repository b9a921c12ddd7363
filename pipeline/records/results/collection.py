"""Gathers what the stages wrote: AggregateSpec and its tasks' outputs in, a typed result per variant out."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from pipeline.records.layout import STAGES, entry_name, output_path, spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import AggregateSpec, CompileSpec, GenerateSpec, TaskRow
from pipeline.records.provenance import Origin
from pipeline.records.record import Record, parse_record, read_record
from pipeline.records.results.compiled import Compiled, CompileOutput, CompileRecord
from pipeline.records.results.profiled import Bound, Ceilings, Profiled, ProfileOutput, ProfileRecord
from pipeline.records.results.variant import Generated, Variant
from pipeline.records.results.verified import Verified, VerifyOutput, VerifyRecord
from pipeline.records.search.model_attempt import Attempt
from pipeline.records.search.written_source import SourceRecord

Output = TypeVar("Output", bound=Record)
StageRecord = TypeVar("StageRecord", CompileRecord, VerifyRecord, ProfileRecord)


class Result(Record, frozen=True, kw_only=True):
    """One variant of one task, with all that the stages said of it."""

    task: TaskRow
    round: int
    variant: Variant
    id: str
    """The variant's, computed once."""
    default: bool | None
    """Whether every tunable has its declared default; None where the plan's spec is not at hand."""
    architecture: str | None
    features: tuple[str, ...] = ()
    """Extensions of the target's instruction set that the compiler could use (CPU)."""
    source: SourceRecord | None = None
    """Who wrote its source, where a search did."""
    origin: Origin | None = None
    """The other machine that made it; None where this checkout did."""
    attempt: Attempt | None = None
    """Of the language model that wrote its source."""
    compile: CompileRecord | None = None
    verify: VerifyRecord | None = None
    profile: ProfileRecord | None = None
    compiled: Compiled | None = None
    """What compile found, if it passed; this and the next two follow from the records."""
    verified: Verified | None = None
    """What verify found, if it passed."""
    profiled: Profiled | None = None
    """What profile measured, if it did."""
    unwanted: str | None = None
    """Why static pruning does not want it measured, whether or not it was."""
    undecided: str | None = None
    """Why a rule of static pruning could not say anything about it."""

    def __post_init__(self) -> None:
        """Once: tables with more than a hundred columns ask for these in nearly every cell."""
        for name, record in (
            ("compiled", self.compile),
            ("verified", self.verify),
            ("profiled", self.profile),
        ):
            result = None if record is None or isinstance(record.result, Failure) else record.result
            msgspec.structs.force_setattr(self, name, result)

    @property
    def records(self) -> dict[str, CompileRecord | VerifyRecord | ProfileRecord]:
        """Stage -> record, in the order of the flow, of the stages that the variant reached."""
        stages = {"compile": self.compile, "verify": self.verify, "profile": self.profile}
        return {stage: record for stage, record in stages.items() if record is not None}

    @property
    def stage(self) -> str:
        """The last stage that the variant reached; that of the failure, if it failed."""
        return list(self.records)[-1] if self.records else "generate"

    @property
    def failure(self) -> Failure | None:
        """Why it did not pass; only the last record can be one."""
        for record in self.records.values():
            if isinstance(record.result, Failure):
                return record.result
        return None

    @property
    def outcome(self) -> Outcome:
        """Outcome of the last stage that it reached."""
        return self.failure.outcome if self.failure else Outcome.PASSED

    def folder(self, stage: str) -> str | None:
        """Path of the stage's store entry from the artifacts' root."""
        record = self.records.get(stage)
        return entry_name(stage, record.entry) if record else None

    @property
    def log(self) -> str | None:
        """Path of the failure's log from the artifacts' root."""
        if self.failure is None or self.failure.log is None:
            return None
        return f"{self.folder(self.stage)}/{self.failure.log}"


class Collected(Record, frozen=True, kw_only=True):
    """All results of an experiment."""

    results: tuple[Result, ...]
    """By task, in the order of the plan, then in the order in which the variants were proposed."""
    generated: tuple[tuple[TaskRow, Generated], ...]
    repeated: tuple[Result, ...] = ()
    """Brief measurements of variants that a later round measured fully: they are no results."""
    declared: dict[str, GenerateSpec] = {}
    """Key of generate -> shapes and space of the task, where the plan's spec is at hand."""


def collect(spec: AggregateSpec, root: Path, contents: Mapping[Path, bytes] | None = None) -> Collected:
    """Read every output that the tasks name; of files whose `contents` are given, these count.

    Raises
    ------
    StoreError
        An output is missing or cannot be read.
    """
    reader = _Reader(root, spec.origin, contents or {})
    results: list[Result] = []
    generated: list[tuple[TaskRow, Generated]] = []
    repeated: list[Result] = []
    for task in spec.tasks:
        seen: dict[str, Result] = {}
        # A search may propose a variant again: then its result is the same one, or the first was brief.
        for number in range(task.rounds):
            made = reader.output("generate", task.generate, number, Generated)
            generated.append((task, made))
            for result in _round(reader, task, number, made):
                earlier = seen.get(result.id)
                if earlier is None or earlier.outcome is Outcome.SCREENED:
                    repeated += [earlier] if earlier is not None else []
                    seen[result.id] = result
        results += on_equal_ceilings(list(seen.values()), task.unit)
    declared = {task.generate: found for task in spec.tasks if (found := reader.generate_spec(task.generate))}
    return Collected(
        results=tuple(results), generated=tuple(generated), repeated=tuple(repeated), declared=declared
    )


def on_equal_ceilings(results: list[Result], unit: str) -> list[Result]:
    """Results of one task with shares of the same roofline, the highest that was measured of their device.

    A result above the ceilings has them measured again, so that those before it refer to lower ones.
    """
    groups: dict[tuple[str | None, str | None], list[Ceilings]] = {}
    for each in results:
        if each.profiled is not None and each.profiled.ceilings is not None:
            groups.setdefault(_device(each.profiled), []).append(each.profiled.ceilings)
    highest = {
        device: {name: max(getattr(each, name) for each in found) for name in _RAISED}
        for device, found in groups.items()
    }
    return [_raised(each, highest, unit) for each in results]


_RAISED = ("cache_bandwidth", "matrix_flops", "vector_flops")


def _device(profiled: Profiled) -> tuple[str | None, str | None]:
    """Whose ceilings they are, and of which level of memory."""
    return profiled.device.get("name"), profiled.ceilings.level if profiled.ceilings else None


def _raised(
    result: Result,
    highest: Mapping[tuple[str | None, str | None], Mapping[str, float]],
    unit: str,
) -> Result:
    measured, record = result.profiled, result.profile
    if measured is None or record is None or measured.ceilings is None:
        return result
    before = measured.ceilings
    ceilings = msgspec.structs.replace(before, **highest[_device(measured)])
    if ceilings == before:
        return result
    raised = msgspec.structs.replace(measured, ceilings=ceilings)
    if measured.roofline_share is not None and measured.bytes is not None and measured.flops is not None:
        memory, compute = measured.bytes / ceilings.cache_bandwidth, measured.flops / ceilings.peak(unit)
        least = max(measured.bytes / before.cache_bandwidth, measured.flops / before.peak(unit))
        nearest: Bound = "memory" if memory >= compute else "compute"
        raised = msgspec.structs.replace(
            raised,
            roofline_share=measured.roofline_share * max(memory, compute) / least,
            bound=measured.bound if measured.bound == "latency" else nearest,
        )
    return msgspec.structs.replace(result, profile=msgspec.structs.replace(record, result=raised))


def read_files(tasks: Sequence[TaskRow], root: Path) -> dict[Path, bytes]:
    """Every file that `collect` reads of these tasks and that is there, with its content."""
    paths: dict[Path, None] = {}
    for task in tasks:
        keys = {stage: getattr(task, stage) for stage in STAGES}
        for number in range(task.rounds):
            paths |= dict.fromkeys(output_path(root, stage, key, number) for stage, key in keys.items())
        paths |= dict.fromkeys(spec_path(root, stage, keys[stage]) for stage in ("generate", "compile"))
    found = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            found[path] = path.read_bytes()
    return found


def _round(reader: "_Reader", task: TaskRow, number: int, made: Generated) -> Iterator[Result]:
    spec = reader.compile_spec(task.compile)
    compiles = _by_variant(reader.output("compile", task.compile, number, CompileOutput).records)
    judged = reader.output("verify", task.verify, number, VerifyOutput)
    verifies = _by_variant(judged.records)
    profiles = _by_variant(reader.output("profile", task.profile, number, ProfileOutput).records)
    sources = {record.entry: record for record in made.records}
    attempts = {attempt.variant: attempt for attempt in reversed(made.attempts) if attempt.variant}
    for variant in made.variants:
        identity = variant.id
        yield Result(
            task=task,
            round=number,
            variant=variant,
            id=identity,
            default=is_default(variant, spec),
            architecture=spec.target.architecture if spec else None,
            features=spec.target.features if spec else (),
            source=sources.get(variant.source_digest) if variant.written else None,
            attempt=attempts.get(identity),
            origin=reader.origin,
            compile=compiles.get(identity),
            verify=verifies.get(identity),
            profile=profiles.get(identity),
            unwanted=judged.unwanted.get(identity),
            undecided=judged.undecided.get(identity),
        )


def _by_variant(records: tuple[StageRecord, ...]) -> dict[str, StageRecord]:
    return {record.variant.id: record for record in records}


def is_default(variant: Variant, spec: CompileSpec | None) -> bool | None:
    """Whether it is the declared source with every tunable at its default; None without the plan's spec."""
    if variant.written:
        return False
    implementation = spec.implementations.get(variant.implementation) if spec else None
    if implementation is None:
        return None
    defaults = {name: tunable.default for name, tunable in implementation.tunables.items()}
    return all(defaults.get(name, value) == value for name, value in variant.tunables.items())


class _Reader:
    """Reads each file once: tasks that differ only in what a later stage reads share the earlier outputs."""

    def __init__(self, root: Path, origin: Origin | None, contents: Mapping[Path, bytes]) -> None:
        self.root = root
        self.origin = origin
        self._contents = contents
        self._outputs: dict[tuple[str, str, int], Record] = {}
        self._specs: dict[str, CompileSpec | None] = {}

    def output(self, stage: str, key: str, number: int, kind: type[Output]) -> Output:
        place = (stage, key, number)
        if place not in self._outputs:
            self._outputs[place] = self._read(output_path(self.root, stage, key, number), kind)
        output = self._outputs[place]
        assert isinstance(output, kind)
        return output

    def generate_spec(self, key: str) -> GenerateSpec | None:
        """The plan's spec, which knows what may be tried; None where it is not at hand."""
        return self._spec(spec_path(self.root, "generate", key), GenerateSpec)

    def compile_spec(self, key: str) -> CompileSpec | None:
        """The plan's spec, which knows the defaults; results brought home without it are still good."""
        if key not in self._specs:
            self._specs[key] = self._spec(spec_path(self.root, "compile", key), CompileSpec)
        return self._specs[key]

    def _spec(self, path: Path, kind: type[Output]) -> Output | None:
        return self._read(path, kind) if path in self._contents or path.is_file() else None

    def _read(self, path: Path, kind: type[Output]) -> Output:
        content = self._contents.get(path)
        return read_record(path, kind) if content is None else parse_record(content, kind, path)
