"""From what the stages said of a variant to a row: Results in, Rows out."""

from collections.abc import Mapping
from pathlib import Path

from pipeline.interop.dataset.artifact_results import TaskContext
from pipeline.interop.dataset.model_traces import trace_of
from pipeline.interop.dataset.named_values import facts, setting, settings, sizes, static_fact
from pipeline.interop.dataset.redaction import Redactor
from pipeline.interop.dataset.row_schema import (
    AbsentComparison,
    Advice,
    Compared,
    Diagnosed,
    Made,
    Measurement,
    Row,
    Source,
    StageEnd,
    StageName,
    Trace,
    Verification,
)
from pipeline.interop.dataset.source_texts import SourceTextReader
from pipeline.performance.diagnosis import diagnose
from pipeline.performance.feedback import feedback
from pipeline.records.configuration.kernel import Kernel
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import digest
from pipeline.records.results.collection import Result
from pipeline.records.results.compiled import CompileRecord
from pipeline.records.results.diagnosed import Finding
from pipeline.records.results.profiled import ProfileRecord
from pipeline.records.results.verified import Verified, VerifyRecord
from pipeline.records.search.model_attempt import Attempt

STAGES: tuple[StageName, ...] = ("compile", "verify", "profile")
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

    def row(self, result: Result, told: TaskContext) -> Row:
        """One variant. Long, because the record has so many fields: each stands here once."""
        task, variant = result.task, result.variant
        kernel = self._kernels.get(task.kernel)
        findings = diagnose(result, told.declared)
        entry = result.compile.entry if result.compile else None
        source = self._texts.source(variant, result.source, entry)
        author = result.source.author if result.source else None
        return Row(
            id=row_id(result),
            group=group_id(result),
            experiment=told.experiment,
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
            reference=self._texts.reference(task.kernel, told.reference, told.reference_digest),
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
            trace=self._trace(told.attempts.get(result.id), source),
            made=_made(result),
            origin=self._clean(result.origin.line) if result.origin else None,
        )

    def _stages(self, result: Result) -> tuple[StageEnd, ...]:
        records: dict[StageName, CompileRecord | VerifyRecord | ProfileRecord | None] = {
            "compile": result.compile,
            "verify": result.verify,
            "profile": result.profile,
        }
        return tuple(self._end(stage, record) for stage in STAGES if (record := records[stage]) is not None)

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
            seconds=found.timing.median,
            batches=len(found.timing.samples),
            processes=len(found.timing.processes) or 1,
            calls_per_batch=found.timing.calls_per_batch,
            joules=found.energy.joules if found.energy else None,
            roofline_share=found.roofline_share,
            bound=found.bound,
            compared=tuple(
                Compared(
                    baseline=each.baseline,
                    seconds=each.timing.median,
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

    def _trace(self, attempt: Attempt | None, source: Source) -> Trace | None:
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


def _made(result: Result) -> tuple[Made, ...]:
    """Without the digest of the machine's name, which could be guessed from it."""
    return tuple(
        Made(
            stage=stage,
            created=record.provenance.created,
            code=record.provenance.code,
            git=record.provenance.git,
            versions=facts(record.provenance.toolchain),
        )
        for stage, record in result.records.items()
    )
