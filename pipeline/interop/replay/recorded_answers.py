"""What a stage would have found. In: a variant and its recorded result. Out: the records of the three stages.

A failure stands at the stage that finds such failures here. What the file does not say is absent: ceilings,
baselines, errors of the results, static facts. A variant without a result fails as `not_recorded`.
"""

import json
import math
from pathlib import Path

import numpy as np

from pipeline.measure.statistics import median
from pipeline.records.compiled import Compiled, StaticFacts
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.profiled import Energy, Interval, Profiled, Timing
from pipeline.records.record import digest_bytes, to_json
from pipeline.records.recorded import RecordedFile, RecordedResult
from pipeline.records.verified import Verified

ARTIFACT = "recorded.json"

COMPILING = frozenset({Outcome.COMPILE_ERROR, Outcome.PRUNED, Outcome.NOT_WRITTEN})
MEASURING = frozenset({Outcome.UNSTABLE_TIMING, Outcome.OVER_ROOFLINE, Outcome.SCREENED})
"""Outcomes that compile and profile find here; all others are verify's."""

ONE_TIME = "The file has one time and no samples: how far to trust it is not known."


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
    """Seconds that measuring took there, with what the tuner itself took; as far as the file tells."""
    return (found.benchmark_seconds or 0.0) * share + (found.framework_seconds or 0.0)


def _timing(found: RecordedResult, confidence: float, share: float) -> Timing | None:
    """All samples in the order recorded; their interval is the bootstrap that our own samples get."""
    if not found.samples:
        if found.median_seconds is None:
            return None
        only = found.median_seconds
        return Timing(samples=(only,), median=Interval(value=only, low=only, high=only, confidence=0.0))
    samples = found.samples[: max(1, math.ceil(len(found.samples) * share))]
    interval = median(samples, confidence)
    middle = float(np.median(samples))
    return Timing(
        samples=samples,
        median=Interval(
            value=middle,
            low=min(interval.low, middle),
            high=max(interval.high, middle),
            confidence=interval.confidence,
        ),
    )


def _failure(found: RecordedResult) -> Failure:
    return Failure(outcome=found.outcome, reason=f"recorded: {found.reason or found.outcome.value}")
