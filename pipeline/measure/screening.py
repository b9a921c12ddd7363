"""Brief measurements. In: the settings of a full one, the share that a search wants. Out: settings, records.

A brief measurement is kept as what it is: the record's result is the outcome `screened`, so that no table, no
winner and no speed-up can come from it; its figures are for the search alone.
"""

import math
from collections.abc import Sequence

import msgspec

from pipeline.records.outcome import Failure, Outcome
from pipeline.records.profiled import Profiled, ProfileRecord, Screening
from pipeline.records.settings import Profile

BATCHES = 3  # fewer have no spread


def share_of(screening: Sequence[float], round_number: int) -> float:
    """Share of a full measurement that a round has; 1 where nothing else is asked for."""
    return screening[round_number] if screening else 1.0


def shortened(settings: Profile, share: float) -> Profile:
    """The same settings with that share of the seconds and batches, without what only a result needs."""
    if share >= 1:
        return settings
    least = max(BATCHES, math.ceil(settings.batches_at_least * share))
    return msgspec.structs.replace(
        settings,
        baselines=settings.baselines[:1],
        seconds_per_variant=settings.seconds_per_variant * share,
        batches_at_least=least,
        batches_at_most=max(least, math.ceil(settings.batches_at_most * share)),
        warmup_seconds_at_most=max(settings.warmup_seconds, settings.warmup_seconds_at_most * share),
        energy_seconds=None,
        gpu_counters=False,
    )


def screened(record: ProfileRecord, share: float) -> ProfileRecord:
    """The record of a brief measurement, which is no result; of a full one, as it is."""
    if share >= 1 or not isinstance(record.result, Profiled):
        return record
    timing = record.result.timing
    failure = Failure(
        outcome=Outcome.SCREENED,
        reason=f"measured briefly ({len(timing.samples)} batches, {share:.0%} of a full measurement)",
    )
    screening = Screening(share=share, timing=timing, recorded=record.result.recorded)
    return msgspec.structs.replace(record, result=failure, screening=screening)
