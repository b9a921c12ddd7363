"""Brief measurements. In: a full one's spec, the share and shape that a search wants. Out: specs, records.

A brief measurement is kept as what it is: the record's result is the outcome `screened`, so that no table, no
winner and no speed-up can come from it; its figures are for the search alone.
"""

import math
from collections.abc import Sequence

import msgspec

from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.formula import ELEMENT_BYTES, evaluate
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import ProfileSpec
from pipeline.records.results.profiled import Profiled, ProfileRecord, Screening
from pipeline.records.results.variant import Variant
from pipeline.records.results.verified import Verified, VerifyOutput

Dimensions = dict[str, int]

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
        processes_at_least=1,
        processes_at_most=1,
        warmup_seconds_at_most=max(settings.warmup_seconds, settings.warmup_seconds_at_most * share),
        energy_seconds=None,
        gpu_counters=False,
    )


def smaller(spec: ProfileSpec, round_number: int) -> Dimensions | None:
    """The shape that a round measures in place of the workload's; None where it is the workload's."""
    dimensions = spec.problem.dimensions
    if not spec.shapes or spec.shapes[round_number] == dimensions:
        return None
    return {name: spec.shapes[round_number][name] for name in dimensions}  # in the order of the declaration


def brief(spec: ProfileSpec, round_number: int) -> ProfileSpec:
    """What a round measures: another shape is another problem, so nothing of it is kept as the workload's."""
    dimensions = smaller(spec, round_number) or {}
    return msgspec.structs.replace(
        spec,
        problem=spec.problem.with_dimensions(dimensions),
        settings=shortened(spec.settings, share_of(spec.screening, round_number)),
        screening=(),
        shapes=(),
    )


def fitting(spec: ProfileSpec, verified: VerifyOutput) -> tuple[VerifyOutput, dict[str, Failure]]:
    """What can be called on the spec's shape; of other variants, by their identity, why not."""
    passed = [each.variant for each in verified.records if isinstance(each.result, Verified)]
    rules = {variant.id: _broken(spec, variant) for variant in passed}
    shape = told(spec.problem.dimensions)
    refused = {
        identity: Failure(
            outcome=Outcome.PRUNED,
            reason=f"cannot be called on the smaller shape of this round ({shape}): `{rule}`",
        )
        for identity, rule in rules.items()
        if rule is not None
    }
    records = tuple(each for each in verified.records if each.variant.id not in refused)
    return msgspec.structs.replace(verified, records=records), refused


def _broken(spec: ProfileSpec, variant: Variant) -> str | None:
    """The first constraint of the variant's that the spec's shape breaks."""
    problem = spec.problem
    names = {
        **spec.target.limits,
        **problem.attributes,
        **problem.dimensions,
        "itemsize": ELEMENT_BYTES[problem.element],
        **variant.tunables,
    }
    rules = (each.rule for each in spec.implementations[variant.implementation].constraints)
    return next((rule for rule in rules if not evaluate(rule, names)), None)


def told(dimensions: Dimensions) -> str:
    """`M=64 N=512`."""
    return " ".join(f"{name}={size}" for name, size in dimensions.items())


def screened(record: ProfileRecord, share: float, dimensions: Dimensions | None = None) -> ProfileRecord:
    """The record of a brief measurement, or of one on smaller dimensions, which is no result.

    That of a full one is left as it is.
    """
    if (share >= 1 and dimensions is None) or not isinstance(record.result, Profiled):
        return record
    timing = record.result.timing
    where = "" if dimensions is None else f" on a smaller shape: {told(dimensions)}"
    failure = Failure(
        outcome=Outcome.SCREENED,
        reason=f"measured briefly ({len(timing.samples)} batches, {share:.0%} of a full measurement){where}",
    )
    screening = Screening(
        share=share,
        timing=timing,
        time=record.result.time,
        dimensions=dimensions,
        recorded=record.result.recorded,
    )
    return msgspec.structs.replace(record, result=failure, screening=screening)
