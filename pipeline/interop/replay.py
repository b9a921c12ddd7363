"""Replay: what compile, verify and profile find for a variant, looked up in a file of recorded measurements.

In: a stage's spec and the records before it. Out: its records. A failure is reported by the stage that finds
such failures here. What the file does not contain is absent: ceilings, baselines, errors of the results,
static facts. A variant without a result fails as `not_recorded`.
"""

import functools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pipeline.interop.formats.format_registry import read_recorded
from pipeline.measure.comparison.screening import screened
from pipeline.measure.statistics import median
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import FormatError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import CompileSpec, ProfileSpec, VerifySpec
from pipeline.records.record import digest, digest_bytes, to_json
from pipeline.records.results.compiled import Compiled, CompileRecord, StaticFacts
from pipeline.records.results.profiled import ConfidenceInterval, Energy, Profiled, ProfileRecord, Timing
from pipeline.records.results.variant import Variant
from pipeline.records.results.verified import Verified, VerifyRecord
from pipeline.records.search.recorded_space import RecordedFile, RecordedResult, RecordedSpace
from pipeline.store.current_provenance import provenance
from pipeline.store.entries import find_entry, new_entry, put_record

ARTIFACT = "recorded.json"

COMPILING = frozenset({Outcome.COMPILE_ERROR, Outcome.PRUNED, Outcome.NOT_WRITTEN})
MEASURING = frozenset({Outcome.UNSTABLE_TIMING, Outcome.OVER_ROOFLINE, Outcome.SCREENED})
"""Outcomes that compile and profile find here; all others are verify's."""

ONE_TIME = "The file has one time and no samples: how far to trust it is not known."
Configuration = frozenset[tuple[str, bool, TunableValue]]


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
            result=verified(found),
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
            result=profiled(found, file, confidence, share),
            seconds=spent_measuring(found, share),
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
            result=compiled(found, file, folder),
            seconds=(found.compile_seconds if found else None) or 0.0,
            provenance=provenance(spec.builds[variant.backend]),
        )
        put_record(folder, record)
    return find_entry(root, "compile", entry, CompileRecord) or record


def _entry(stage: str, file: RecordedFile, variant: Variant) -> str:
    return digest(["recorded", stage, file, variant])


class RecordedLookup:
    """The results of a file, by configuration."""

    def __init__(self, recorded: RecordedSpace) -> None:
        self._results = {_configuration(each.tunables): each for each in recorded.results}

    def of(self, variant: Variant) -> RecordedResult | None:
        """What was recorded of a variant; None where nothing was, as of every source that a search wrote."""
        return None if variant.written else self._results.get(_configuration(variant.tunables))


def replay(file: RecordedFile, project: Path) -> RecordedLookup:
    """The file as the plan found it, read once by each process.

    Raises
    ------
    FormatError
        It is gone, or another one than when the plan was made.
    """
    path = project / file.path
    try:
        found = digest_bytes(path.read_bytes())
    except OSError as error:
        raise FormatError(f"{path}: recorded measurements: {error.strerror or error}") from None
    if found != file.digest:
        text = f"expected the content with the digest {file.digest}, got {found}"
        raise FormatError(
            f"{path}: changed since the plan was made: {text}; run again, and it is planned anew"
        )
    return _read(path, file.digest)


@functools.lru_cache(maxsize=4)
def _read(path: Path, digest: str) -> RecordedLookup:  # noqa: ARG001  (another content is another file)
    return RecordedLookup(read_recorded(path))


def _configuration(tunables: Mapping[str, TunableValue]) -> Configuration:
    """1 and true are two values; 1 and 1.0 are one, as to Python's dictionaries."""
    return frozenset((name, isinstance(value, bool), value) for name, value in tunables.items())


def compiled(found: RecordedResult | None, file: RecordedFile, folder: Path) -> Compiled | Failure:
    """The recorded result itself is the artifact: it is what the later stages go by."""
    if found is None:
        return Failure(outcome=Outcome.NOT_RECORDED, reason=f"no result of this variant: {file.line}")
    if found.outcome in COMPILING:
        return _failure(found)
    content = to_json(found)
    (folder / ARTIFACT).write_bytes(json.dumps(json.loads(content), indent=1).encode())
    return Compiled(
        artifact=ARTIFACT,
        artifact_digest=digest_bytes(content),
        functions=(file.implementation,),
        facts=StaticFacts(),
        files=(ARTIFACT,),
    )


def verified(found: RecordedResult) -> Verified | Failure:
    """What the record says; nothing ran here."""
    judged = found.outcome is Outcome.PASSED or found.outcome in MEASURING
    return Verified() if judged else _failure(found)


def profiled(
    found: RecordedResult, file: RecordedFile, confidence: float, share: float = 1.0
) -> Profiled | Failure:
    """The recorded samples, of a brief measurement the first so many of them."""
    if found.outcome is not Outcome.PASSED:
        return _failure(found)
    timing = _timing(found, confidence, share)
    if timing is None:
        return Failure(outcome=Outcome.NOT_RECORDED, reason=f"it passed, but has no time: {file.line}")
    notes: tuple[str, ...] = () if found.samples else (ONE_TIME,)
    return Profiled(
        timing=timing,
        comparisons=(),
        device={"name": file.device or "unnamed", "recorded in": file.path.rpartition("/")[2]},
        notes=notes,
        energy=Energy(joules=found.joules, source="recorded") if found.joules is not None else None,
        recorded=file.line,
    )


def spent_measuring(found: RecordedResult, share: float = 1.0) -> float:
    """Seconds that measuring took there, including the tuner's own time, as far as the file says."""
    return (found.benchmark_seconds or 0.0) * share + (found.framework_seconds or 0.0)


def _timing(found: RecordedResult, confidence: float, share: float) -> Timing | None:
    """All samples in the order recorded; their interval is the bootstrap that our own samples get."""
    if not found.samples:
        if found.median_seconds is None:
            return None
        only = found.median_seconds
        return Timing(
            samples=(only,), median=ConfidenceInterval(value=only, low=only, high=only, confidence=0.0)
        )
    samples = found.samples[: max(1, math.ceil(len(found.samples) * share))]
    interval = median(samples, confidence)
    middle = float(np.median(samples))
    return Timing(
        samples=samples,
        median=ConfidenceInterval(
            value=middle,
            low=min(interval.low, middle),
            high=max(interval.high, middle),
            confidence=interval.confidence,
        ),
    )


def _failure(found: RecordedResult) -> Failure:
    return Failure(outcome=found.outcome, reason=f"recorded: {found.reason or found.outcome.value}")
