"""Rows of a data set: an artifacts folder in; results of its tasks, one at a time, and rows out."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipeline.interop.dataset.row_schema import (
    AbsentComparison,
    Advice,
    DatasetRow,
    DatasetSource,
    Diagnosed,
    ExportedComparison,
    Fact,
    Measurement,
    ModelTrace,
    Question,
    Said,
    Setting,
    Size,
    StageEnd,
    StageName,
    StageProvenance,
    StaticFact,
    Verification,
)
from pipeline.interop.dataset.source_texts import Redactor, SourceTextReader
from pipeline.performance.diagnosis import diagnose
from pipeline.performance.feedback import feedback
from pipeline.records.configuration.kernel import Kernel, TunableValue
from pipeline.records.errors import ConfigError, StoreError
from pipeline.records.layout import STAGES, entry_path, output_path, spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import AggregateSpec, GenerateSpec, TaskRow, VerifySpec
from pipeline.records.record import digest, read_record
from pipeline.records.results.collection import Collected, Result, collect
from pipeline.records.results.compiled import CompileRecord, StaticFacts
from pipeline.records.results.diagnosed import Finding
from pipeline.records.results.profiled import ProfileRecord
from pipeline.records.results.verified import Verified, VerifyRecord
from pipeline.records.search.model_attempt import Attempt, ModelAnswer, ModelCall
from pipeline.search.agents.answer_cache import STAGE
from pipeline.store.attempt_history import read_attempts
from pipeline.store.entries import RECORD


class TaskContext(NamedTuple):
    """What the plan and generate recorded about a task."""

    experiment: str
    declared: GenerateSpec | None
    reference: str | None
    """`module:function`."""
    reference_digest: str | None
    attempts: dict[str, Attempt]
    """Variant -> the attempt of a language model that produced it."""
    sourceless: int
    """Attempts of language models, and other proposals, without a variant."""


class FinishedTask(NamedTuple):
    """A task all of whose rounds have finished."""

    context: TaskContext
    results: tuple[Result, ...]


def experiments(root: Path, wanted: str | None) -> list[AggregateSpec]:
    """Those that were planned there, in the order of their keys; `wanted` is a name or a key.

    Raises
    ------
    StoreError
        There is none.
    ConfigError
        There is none of that name.
    """
    paths = sorted((root / "plan" / "aggregate").glob("*.json"))
    found = [(path.stem, read_record(path, AggregateSpec)) for path in paths]
    if not found and wanted is None and read_attempts(root):  # agents' work alone
        return []
    if not found:
        raise StoreError(f"{root}: nothing to export: no experiment was planned there{_judged(root)}")
    chosen = [spec for key, spec in found if wanted is None or wanted in (key, spec.experiment)]
    if not chosen:
        names = sorted({spec.experiment for _, spec in found})
        raise ConfigError(
            f"--experiment {wanted}: not in {root}; there are {', '.join(names)} (or their keys)"
        )
    return chosen


def _judged(root: Path) -> str:
    """What follows if candidates of `kernelmill judge` are all that a folder holds."""
    if not any((root / "judge").glob("*.json")):
        return ""
    return (
        "; candidates of kernelmill judge are no part of the data set: their verdicts are in the table "
        "of judge --out, their scores in that of leaderboard --csv"
    )


def tasks(specs: list[AggregateSpec], root: Path) -> Iterator[FinishedTask | None]:
    """Each distinct task once; None for one that has not finished.

    Raises
    ------
    StoreError
        An output is there and cannot be read.
    """
    seen: set[tuple[str, ...]] = set()
    for spec in specs:
        for task in spec.tasks:
            key = (task.hardware, *(getattr(task, stage) for stage in STAGES))
            if key not in seen:
                seen.add(key)
                yield _read(spec, task, root) if _has_ended(task, root) else None


def _has_ended(task: TaskRow, root: Path) -> bool:
    return all(
        output_path(root, stage, getattr(task, stage), number).is_file()
        for stage in STAGES
        for number in range(task.rounds)
    )


def _read(spec: AggregateSpec, task: TaskRow, root: Path) -> FinishedTask:
    collected = collect(msgspec.structs.replace(spec, tasks=(task,)), root)
    path = spec_path(root, "verify", task.verify)
    verify = read_record(path, VerifySpec) if path.is_file() else None
    context = TaskContext(
        experiment=spec.experiment,
        declared=collected.declared.get(task.generate),
        reference=verify.reference if verify else None,
        reference_digest=verify.reference_digest if verify else None,
        attempts=_attempts(collected),
        sourceless=sum(len(made.unfit) for _, made in collected.generated),
    )
    return FinishedTask(context=context, results=collected.results)


def _attempts(collected: Collected) -> dict[str, Attempt]:
    """The first attempt that produced each variant."""
    found: dict[str, Attempt] = {}
    for _, made in collected.generated:
        for attempt in made.attempts:
            if attempt.variant is not None:
                found.setdefault(attempt.variant, attempt)
    return found


RESULT_STAGES: tuple[StageName, ...] = ("compile", "verify", "profile")
VERIFIED = frozenset({Outcome.PASSED, Outcome.DEVICE_UNAVAILABLE, Outcome.UNSTABLE_TIMING, Outcome.SCREENED})
"""Ends of what verified: whatever kept it from being measured says nothing against it."""


def is_verified(result: Result) -> bool:
    """Whether the gate passed it, and nothing that was measured speaks against it."""
    return result.verified is not None and result.outcome in VERIFIED


class RowMaker:
    """Makes the rows of one export."""

    def __init__(
        self, kernels: Mapping[str, Kernel], texts: SourceTextReader, cleaner: Redactor, root: Path
    ) -> None:
        self._kernels = kernels
        self._texts = texts
        self._clean = cleaner.text
        self._cleaner = cleaner
        self._root = root

    def row(self, result: Result, context: TaskContext) -> DatasetRow:
        """One variant. Long, because the record has so many fields: each stands here once."""
        task, variant = result.task, result.variant
        kernel = self._kernels.get(task.kernel)
        findings = diagnose(result, context.declared)
        entry = result.compile.entry if result.compile else None
        source = self._texts.source(variant, result.source, entry)
        author = result.source.author if result.source else None
        return DatasetRow(
            id=row_id(result),
            group=group_id(result),
            experiment=context.experiment,
            kernel=task.kernel,
            description=kernel.description if kernel else None,
            category=kernel.category if kernel else None,
            workload=task.workload,
            dimensions=sizes(task.dimensions),
            dtype=task.dtype,
            attributes=settings(variant.attributes),
            hardware=task.hardware,
            kind=task.kind,
            architecture=result.architecture,
            optimization=task.optimization,
            search=task.search,
            round=result.round,
            variant=result.id,
            implementation=variant.implementation,
            backend=variant.backend,
            tunables=settings(variant.tunables),
            reference=self._texts.reference(task.kernel, context.reference, context.reference_digest),
            differentiated=kernel is not None and kernel.gradient_of is not None,
            source=source,
            source_digest=variant.source_digest,
            written=variant.written,
            author=f"{author.writer}: {author.name}" if author else None,
            parents=result.source.parents if result.source else (),
            outcome=result.outcome,
            stages=self._stages(result),
            verification=_verification(result.verify),
            facts=static_fact(result.compiled.facts) if result.compiled else None,
            measurement=self._measurement(result),
            diagnosis=tuple(self._diagnosed(finding) for finding in findings),
            feedback=self._clean("\n".join(feedback(result, findings))),
            trace=self._trace(context.attempts.get(result.id), source),
            made=_made(result),
            origin=self._clean(result.origin.line) if result.origin else None,
        )

    def _stages(self, result: Result) -> tuple[StageEnd, ...]:
        records: dict[StageName, CompileRecord | VerifyRecord | ProfileRecord | None] = {
            "compile": result.compile,
            "verify": result.verify,
            "profile": result.profile,
        }
        return tuple(
            self._end(stage, record) for stage in RESULT_STAGES if (record := records[stage]) is not None
        )

    def _end(self, stage: StageName, record: CompileRecord | VerifyRecord | ProfileRecord) -> StageEnd:
        failure = record.result if isinstance(record.result, Failure) else None
        return StageEnd(
            stage=stage,
            outcome=failure.outcome if failure else Outcome.PASSED,
            reason=self._clean(failure.reason) if failure else None,
            seconds=record.seconds,
        )

    def _measurement(self, result: Result) -> Measurement | None:
        """No time without a pass."""
        found = result.profiled if result.failure is None else None
        if found is None:
            return None
        return Measurement(
            seconds=found.time,
            batches=len(found.timing.samples),
            processes=len(found.timing.processes) or 1,
            calls_per_batch=found.timing.calls_per_batch,
            joules=found.energy.joules if found.energy else None,
            roofline_share=found.roofline_share,
            bound=found.bound,
            compared=tuple(
                ExportedComparison(
                    baseline=each.baseline,
                    seconds=found.baseline_time(each),
                    speedup=each.speedup,
                    verdict=each.verdict,
                )
                for each in found.comparisons
            ),
            absent=tuple(
                AbsentComparison(baseline=each.baseline, reason=self._clean(each.reason))
                for each in found.absent
            ),
            device=facts({name: self._clean(value) for name, value in found.device.items()}),
            notes=tuple(map(self._clean, found.notes)),
        )

    def _diagnosed(self, finding: Finding) -> Diagnosed:
        return Diagnosed(
            code=str(finding.code),
            basis=finding.basis,
            sentence=self._clean(finding.sentence),
            evidence=finding.evidence,
            estimate_gain_at_most=finding.gain_at_most,
            advice=tuple(
                Advice(
                    tunable=each.tunable,
                    technique=each.technique,
                    direction=each.direction,
                    values=tuple(setting(each.tunable, value) for value in each.values),
                )
                for each in finding.suggestions
            ),
        )

    def _trace(self, attempt: Attempt | None, source: DatasetSource) -> ModelTrace | None:
        return None if attempt is None else trace_of(attempt, self._root, self._cleaner, source.absent)


def row_id(result: Result) -> str:
    """Of the problem, the target, the variant, and what the stages found out about it."""
    entries = {stage: record.entry for stage, record in result.records.items()}
    found = [result.architecture, entries, result.outcome]
    return digest([group_id(result), result.task.hardware, result.id, found])


def group_id(result: Result) -> str:
    """Equal for all variants that compute the same."""
    task = result.task
    return digest([task.kernel, result.variant.attributes, task.dimensions, task.dtype])


def _verification(record: VerifyRecord | None) -> Verification | None:
    if record is None or not isinstance(record.result, Verified):
        return None
    return Verification(
        where=record.where,
        worst_share=record.result.worst_share,
        worst_error=record.result.worst_error,
        checks=tuple(each.check for each in record.checks),
        weak=record.result.weak,
        isolation=record.isolation,
    )


def _made(result: Result) -> tuple[StageProvenance, ...]:
    """Without the digest of the machine's name, which could be guessed from it."""
    return tuple(
        StageProvenance(
            stage=stage,
            created=record.provenance.created,
            code=record.provenance.code,
            git=record.provenance.git,
            versions=facts(record.provenance.toolchain),
        )
        for stage, record in result.records.items()
    )


def settings(values: dict[str, TunableValue]) -> tuple[Setting, ...]:
    """By name."""
    return tuple(setting(name, value) for name, value in sorted(values.items()))


def setting(name: str, value: TunableValue) -> Setting:
    """One of them; a truth value is no number."""
    if isinstance(value, bool):
        return Setting(name=name, kind="boolean", value="true" if value else "false")
    if isinstance(value, str):
        return Setting(name=name, kind="text", value=value)
    return Setting(name=name, kind="integer" if isinstance(value, int) else "number", value=repr(value))


def sizes(counts: dict[str, int]) -> tuple[Size, ...]:
    """By name."""
    return tuple(Size(name=name, value=count) for name, count in sorted(counts.items()))


def facts(values: dict[str, str]) -> tuple[Fact, ...]:
    """By name."""
    return tuple(Fact(name=name, value=value) for name, value in sorted(values.items()))


def static_fact(found: StaticFacts) -> StaticFact:
    """The same with what is estimated under names that say so."""
    return StaticFact(
        code_bytes=found.code_bytes,
        registers=found.registers,
        scalar_registers=found.scalar_registers,
        spills=found.spills,
        shared_memory=found.shared_memory,
        threads_per_block=found.threads_per_block,
        local_memory=found.local_memory,
        barriers=found.barriers,
        matrix=sizes(found.matrix),
        extensions=sizes(found.extensions),
        instructions=sizes(found.instructions),
        estimate_occupancy=found.occupancy_bound,
        estimate_occupancy_limiter=found.occupancy_limiter,
        estimate_resident_blocks=found.resident_blocks,
    )


def trace_of(attempt: Attempt, root: Path, cleaner: Redactor, withheld: str | None) -> ModelTrace:
    """Questions in their order. `withheld`: why the source has no text, which answers would hold."""
    change = None if attempt.change is None else cleaner.text(attempt.change)
    if withheld is not None:
        return ModelTrace(change=change, questions=(), absent=withheld)
    questions = tuple(_question(asked, root, cleaner) for asked in attempt.asked)
    return ModelTrace(change=change, questions=questions, absent=None)


def _question(asked: ModelCall, root: Path, cleaner: Redactor) -> Question:
    """The endpoint's address is left out: it may be a machine's name."""
    answer = _answer(asked.entry, root)
    return Question(
        role=asked.role,
        template=asked.template.name,
        version=asked.template.version,
        model=asked.model,
        outcome=str(asked.outcome),
        reason=None if asked.reason is None else cleaner.text(asked.reason),
        messages=_messages(answer, cleaner),
        answer=None if answer is None else cleaner.text(answer.text),
        refusal=None if answer is None or answer.refusal is None else cleaner.text(answer.refusal),
        finish=None if answer is None else answer.finish,
        prompt_tokens=asked.prompt_tokens,
        completion_tokens=asked.completion_tokens,
        cost=asked.cost,
        currency=asked.currency,
        seconds=asked.seconds,
        tries=asked.tries,
    )


def _messages(answer: ModelAnswer | None, cleaner: Redactor) -> tuple[Said, ...]:
    if answer is None:
        return ()
    return tuple(Said(role=each.role, content=cleaner.text(each.content)) for each in answer.request.messages)


def _answer(entry: str, root: Path) -> ModelAnswer | None:
    """None where nothing was answered, or the store lost it."""
    try:
        return read_record(entry_path(root, STAGE, entry) / RECORD, ModelAnswer)
    except StoreError:
        return None
