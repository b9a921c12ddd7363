"""Where a call lies under its ceilings, and what disturbed its measurement: `memory_bound`, `throttled`, …"""

from collections.abc import Iterator

from pipeline.performance.diagnosis.diagnosed_case import Case, evidence
from pipeline.performance.quantities import rate, seconds, share
from pipeline.performance.time_bound import Bound
from pipeline.records.results.diagnosed import Finding, FindingCode
from pipeline.records.results.profiled import Profiled

_LAUNCH_GAIN = 2.0  # of what lies inside the call; fewer calls can gain more
NEAR = 0.5
"""Share of the nearer ceiling from which on that ceiling is what bounds the call."""


def place_under_ceilings(case: Case) -> Iterator[Finding]:
    """What was measured; where nothing was, what the declared peaks say of an ideal call."""
    if case.profiled is not None and case.profiled.bound is not None:
        started = case.profiled.bound not in ("memory", "compute")
        yield _start_of_a_call(case.profiled) if started else _measured(case.profiled)
    elif case.declared is not None:
        yield _estimated(case.declared)


def _measured(profiled: Profiled) -> Finding:
    reached, memory = profiled.roofline_share, profiled.bound == "memory"
    median = profiled.time.value
    amount, unit = (profiled.bytes, "B/s") if memory else (profiled.flops, "FLOP/s")
    assert amount is not None and reached is not None  # a bound was found with them
    near = reached >= NEAR
    achieved, percent = rate(amount / median, unit), share(reached)
    ceiling = (
        "the bandwidth measured for this working set" if memory else "the arithmetic rate that was measured"
    )
    if near:
        code = FindingCode.MEMORY_BOUND if memory else FindingCode.COMPUTE_BOUND
        sentence = f"{'Memory' if memory else 'Compute'}-bound: {achieved}, {percent} of {ceiling}."
    else:
        code = FindingCode.FAR_FROM_CEILINGS
        sentence = (
            f"Far from every ceiling: {achieved}, {percent} of {ceiling}, the nearer one. Most of the "
            "time goes elsewhere: latency, dependences, other instructions, or the start of the call."
        )
    return Finding(
        code=code,
        basis="measured",
        sentence=sentence,
        evidence=evidence(
            roofline_share=(reached, "share"),
            achieved=(amount / median, unit),
            time=(median, "s"),
        ),
        gain_at_most=max(1.0, 1 / reached),
    )


def _start_of_a_call(profiled: Profiled) -> Finding:
    """What profile calls the bound where a call that does nothing takes half of the time or more."""
    median = profiled.time.value
    return Finding(
        code=FindingCode.LAUNCH_BOUND,
        basis="measured",
        sentence=(
            f"Bound by the start of a call: half of its {seconds(median)} or more is what a call takes that "
            "does nothing."
        ),
        evidence=evidence(roofline_share=(profiled.roofline_share, "share"), time=(median, "s")),
        gain_at_most=_LAUNCH_GAIN,
    )


def _estimated(bound: Bound) -> Finding:
    memory, compute = bound.of("memory") or 0.0, bound.of("compute") or 0.0
    side = "memory" if memory >= compute else "compute"
    code = FindingCode.MEMORY_BOUND if side == "memory" else FindingCode.COMPUTE_BOUND
    longest = bound.longest
    beyond = ""
    if longest.name in ("spread", "latency"):
        why = "as its blocks spread" if longest.name == "spread" else "with so few loads in flight"
        beyond = f"; {seconds(longest.seconds)} {why}"
    return Finding(
        code=code,
        basis="estimate",
        sentence=(
            f"Estimate: {side}-bound at best. By the declared peaks its bytes take "
            f"{seconds(memory)}, its operations {seconds(compute)}{beyond}."
        ),
        evidence=evidence(memory=(memory, "s"), compute=(compute, "s"), least=(bound.seconds, "s")),
    )


def measurement_conditions(case: Case) -> Iterator[Finding]:
    """A slowed clock by its reasons, and the notes of the measurement as they stand."""
    if case.profiled is None:
        return
    conditions = case.profiled.conditions
    if conditions is not None and conditions.throttled:
        numbers = {
            "clock_low": (conditions.clock_mhz_low, "MHz"),
            "clock_high": (conditions.clock_mhz_high, "MHz"),
            "temperature": (conditions.temperature_celsius, "°C"),
        }
        yield Finding(
            code=FindingCode.THROTTLED,
            basis="measured",
            sentence=f"The device slowed its clock while measuring: {', '.join(conditions.throttled)}.",
            evidence=evidence(
                **{name: (value, unit) for name, (value, unit) in numbers.items() if value is not None}
            ),
        )
    for note in case.profiled.notes:
        sentence = note.removeprefix("disturbed: ")
        yield Finding(code=FindingCode.DISTURBED, basis="measured", sentence=sentence, evidence=())
