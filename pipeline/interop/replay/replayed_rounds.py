"""One round of a stage, replayed. In: the stage's spec and the records before it. Out: its records."""

from collections.abc import Sequence
from pathlib import Path

from pipeline.interop.replay import recorded_answers
from pipeline.interop.replay.recorded_file import replay
from pipeline.measure.screening import screened
from pipeline.records.compiled import Compiled, CompileRecord
from pipeline.records.profiled import ProfileRecord
from pipeline.records.record import digest
from pipeline.records.recorded import RecordedFile, RecordedResult
from pipeline.records.specs import CompileSpec, ProfileSpec, VerifySpec
from pipeline.records.variant import Variant
from pipeline.records.verified import Verified, VerifyRecord
from pipeline.store.entries import find_entry, new_entry, put_record
from pipeline.store.provenance import provenance


def compile_records(
    spec: CompileSpec, file: RecordedFile, variants: Sequence[Variant], root: Path
) -> tuple[CompileRecord, ...]:
    """A store entry for each variant, with its recorded result.

    Raises
    ------
    FormatError
        The file is gone or has changed.
    """
    recorded = replay(file, Path.cwd())
    return tuple(_compiled(spec, file, recorded.of(variant), variant, root) for variant in variants)


def verify_records(
    spec: VerifySpec, file: RecordedFile, compiled: Sequence[CompileRecord]
) -> tuple[VerifyRecord, ...]:
    """Of what compiled there; not stored, for nothing was found out.

    Raises
    ------
    FormatError
        The file is gone or has changed.
    """
    recorded = replay(file, Path.cwd())
    return tuple(
        VerifyRecord(
            variant=record.variant,
            entry=_entry("verify", file, record.variant),
            result=recorded_answers.verified(found),
            where="recorded",
            checks=(),
            shapes=(),
            seeds=(),
            seconds=found.verify_seconds or 0.0,
            provenance=provenance(spec.builds[record.variant.backend]),
        )
        for record in compiled
        if isinstance(record.result, Compiled) and (found := recorded.of(record.variant)) is not None
    )


def profile_records(
    spec: ProfileSpec, file: RecordedFile, verified: Sequence[VerifyRecord], share: float
) -> tuple[ProfileRecord, ...]:
    """Of what was right there; not stored, for nothing was measured.

    `share` is that of a brief measurement: 1 where all samples count.

    Raises
    ------
    FormatError
        The file is gone or has changed.
    """
    recorded = replay(file, Path.cwd())
    confidence = spec.settings.confidence
    records = [
        ProfileRecord(
            variant=record.variant,
            entry=_entry("profile", file, record.variant),
            result=recorded_answers.profiled(found, file, confidence, share),
            seconds=recorded_answers.spent_measuring(found, share),
            provenance=provenance(spec.builds[record.variant.backend]),
        )
        for record in verified
        if isinstance(record.result, Verified) and (found := recorded.of(record.variant)) is not None
    ]
    return tuple(screened(record, share) for record in records)


def _compiled(
    spec: CompileSpec, file: RecordedFile, found: RecordedResult | None, variant: Variant, root: Path
) -> CompileRecord:
    entry = _entry("compile", file, variant)
    kept = find_entry(root, "compile", entry, CompileRecord)
    if kept is not None:
        return kept
    with new_entry(root, "compile", entry) as folder:
        record = CompileRecord(
            variant=variant,
            entry=entry,
            result=recorded_answers.compiled(found, file, folder),
            seconds=(found.compile_seconds if found else None) or 0.0,
            provenance=provenance(spec.builds[variant.backend]),
        )
        put_record(folder, record)
    return find_entry(root, "compile", entry, CompileRecord) or record


def _entry(stage: str, file: RecordedFile, variant: Variant) -> str:
    return digest(["recorded", stage, file, variant])
