"""Prune variants before they are measured, by facts of their binaries and by the analytic bound.

Verify applies the rules (`Prune`) to a round's compiled variants, whatever the strategy. A rule can be wrong,
so a share of the variants that it would drop is measured anyway, which shows what it loses. The bound is an
estimate of the least time of a call (`pipeline.performance.bound`), from ceilings that an earlier round
measured, or else from declared peaks. A variant whose bound is unknown stays.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.performance.roofline import latency_seconds, peak_rates
from pipeline.performance.time_bound import BoundDevice, LeastWork, Rates, bound, launch_of, reachable_flops
from pipeline.records.configuration.pruning import Bounded, Prune, PruningReasons, Reach, Scale
from pipeline.records.planning.specs import VerifySpec
from pipeline.records.record import read_record
from pipeline.records.results.compiled import Compiled, CompileRecord, StaticFacts
from pipeline.records.results.profiled import Profiled, ProfileOutput
from pipeline.records.results.variant import Variant

_DIGITS = 8  # hexadecimal, of a variant's id, which is uniformly distributed


def judge(spec: VerifySpec, records: Sequence[CompileRecord], scale: Scale | None) -> PruningReasons:
    """The reasons of all rules for a round's variants, including those that are measured anyway."""
    if spec.prune is None:
        return PruningReasons(unwanted={}, undecided={})
    found = bound_reasons(spec, records, scale)
    unwanted = dict(found.unwanted)
    for each in records:
        why = reason(each.result.facts, spec.prune) if isinstance(each.result, Compiled) else None
        if why is not None:
            unwanted[each.variant.id] = why
    undecided = {identity: why for identity, why in found.undecided.items() if identity not in unwanted}
    return PruningReasons(unwanted=unwanted, undecided=undecided)


def reason(facts: StaticFacts, prune: Prune) -> str | None:
    """Why a variant is not worth measuring; None if it is, or if its backend does not know the fact."""
    return next(_reasons(facts, prune), None)


def is_measured_anyway(variant: Variant, prune: Prune) -> bool:
    """Whether the variant is measured although a rule drops it; always the same variants."""
    return int(variant.id[:_DIGITS], 16) / float(16**_DIGITS) < prune.measured_anyway


def _reasons(facts: StaticFacts, prune: Prune) -> Iterator[str]:
    spills, local, occupancy = facts.spills, facts.local_memory, facts.occupancy_bound
    if prune.spills_at_most is not None and spills is not None and spills > prune.spills_at_most:
        yield f"spills {spills} bytes per thread, search.prune allows {prune.spills_at_most}"
    if prune.local_memory_at_most is not None and local is not None and local > prune.local_memory_at_most:
        yield f"{local} bytes of local memory per thread, search.prune allows {prune.local_memory_at_most}"
    if (
        prune.occupancy_at_least is not None
        and occupancy is not None
        and occupancy < prune.occupancy_at_least
    ):
        yield f"estimated occupancy {occupancy:.0%}, search.prune wants {prune.occupancy_at_least:.0%}"


NO_FORMULA = "the kernel has no formula for its operations or its bytes"
NO_RATES = "the target declares no peak for it, and no ceiling was measured in an earlier round"
NOTHING_MEASURED = "no earlier round measured a variant to compare its bound with"


def scale_of(outputs: Sequence[Path]) -> Scale:
    """What earlier rounds measured: the best time, and the latest ceilings.

    Raises
    ------
    StoreError
        A file is not an output of profile.
    """
    records = [record for path in outputs for record in read_record(path, ProfileOutput).records]
    found = [record.result for record in records if isinstance(record.result, Profiled)]
    ceilings = next((each.ceilings for each in reversed(found) if each.ceilings is not None), None)
    return Scale(
        seconds=min((each.time.value for each in found), default=None),
        reach=Reach(
            bandwidth=ceilings.cache_bandwidth,
            vector_flops=ceilings.vector_flops,
            matrix_flops=ceilings.matrix_flops,
        )
        if ceilings is not None
        else None,
    )


def bound_reasons(spec: VerifySpec, records: Sequence[CompileRecord], scale: Scale | None) -> PruningReasons:
    """For every variant that compiled: the first rule that drops it, or why its bound is unknown."""
    prune, bounded, scale = spec.prune, spec.bounded, scale or Scale()
    if prune is None or bounded is None or not prune.by_bound:
        return PruningReasons(unwanted={}, undecided={})
    compiled = {each.variant.id: each.result for each in records if isinstance(each.result, Compiled)}
    seconds: dict[str, float] = {}
    undecided: dict[str, str] = {}
    for identity, each in compiled.items():
        found = _least_seconds(each, spec, bounded, scale.reach)
        if isinstance(found, str):
            undecided[identity] = found
        else:
            seconds[identity] = found
    least = min(seconds.values(), default=None)
    reasons = {
        identity: _bound_reason(value, prune, least, scale.seconds) for identity, value in seconds.items()
    }
    if prune.bound_over_best_at_most is not None and scale.seconds is None:
        undecided |= {identity: NOTHING_MEASURED for identity, why in reasons.items() if why is None}
    return PruningReasons(
        unwanted={identity: why for identity, why in reasons.items() if why is not None}, undecided=undecided
    )


def _least_seconds(
    compiled: Compiled, spec: VerifySpec, bounded: Bounded, reach: Reach | None
) -> float | str:
    """The bound, or why there is none."""
    if bounded.flops is None or bounded.bytes is None:
        return NO_FORMULA
    device = BoundDevice(kind=spec.target.kind, unit=bounded.unit, limits=spec.target.limits)
    rates = _rates(compiled, device, bounded, reach)
    if rates is None:
        return NO_RATES
    work = LeastWork(flops=bounded.flops, bytes=bounded.bytes, read=bounded.read)
    return bound(work, rates, launch_of(compiled, device)).seconds


def _rates(compiled: Compiled, device: BoundDevice, bounded: Bounded, reach: Reach | None) -> Rates | None:
    if reach is not None:
        flops = reachable_flops(
            compiled.facts, device, vector_flops=reach.vector_flops, matrix_flops=reach.matrix_flops
        )
        return Rates(bandwidth=reach.bandwidth, arithmetic=flops)
    bandwidth, arithmetic = peak_rates(bounded)
    if bandwidth is None or arithmetic is None:
        return None
    return Rates(bandwidth=bandwidth, arithmetic=arithmetic, latency=latency_seconds(bounded.peaks))


def _bound_reason(seconds: float, prune: Prune, least: float | None, best: float | None) -> str | None:
    references = (
        ("best measured so far", best, prune.bound_over_best_at_most),
        ("shortest estimate of the round", least, prune.bound_over_least_at_most),
    )
    for name, reference, allowed in references:
        if reference is not None and allowed is not None and seconds > allowed * reference:
            return (
                f"least time estimated at {seconds * 1e3:.3g} ms, {seconds / reference:.3g} times the "
                f"{name}, search.prune allows {allowed:g}"
            )
    return None
