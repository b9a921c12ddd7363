"""What the rounds say: intervals, verdicts and notes. In: rounds. Out: Measured, or Unstable."""

from collections.abc import Sequence

from pipeline.measure import monitor, statistics
from pipeline.measure.clock import check_clock
from pipeline.measure.costs import Examined
from pipeline.measure.disturbance import Disturbance
from pipeline.measure.member import Member
from pipeline.measure.rounds import CANDIDATE, CLEAN, HOPELESS, IMPRECISE, Round, quiet, undisturbed, waiting
from pipeline.records.profiled import (
    AbsentBaseline,
    Comparison,
    Conditions,
    Interval,
    Peak,
    Timing,
    Unmeasured,
)
from pipeline.records.record import Record
from pipeline.records.settings import Profile


class Measured(Record, frozen=True, kw_only=True):
    """One candidate against its baselines."""

    timing: Timing
    comparisons: tuple[Comparison, ...]
    absent: tuple[AbsentBaseline, ...]
    notes: tuple[str, ...]
    facts: dict[str, str]
    """Of the device, as found by the candidate's process, and what else ran on it."""
    rounds: tuple[Round, ...]
    """All that were run, those that were repeated included."""
    conditions: Conditions
    """Of the device, over all rounds."""
    first_peak: Peak | None = None
    """Memory that the first call took."""
    examined: Examined | None = None
    """What a call costs besides time."""
    unmeasured: tuple[Unmeasured, ...] = ()


class Unstable(Exception):
    """The samples scatter beyond use; all rounds are kept."""

    def __init__(self, reason: str, rounds: Sequence[Round]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.rounds = rounds


def summarize(
    members: Sequence[Member],
    rounds: Sequence[Round],
    settings: Profile,
    absent: tuple[AbsentBaseline, ...],
    found: Disturbance | None,
) -> Measured:
    """Intervals and verdicts from the samples, after the candidate's clock was checked."""
    candidate, *others = members
    used = undisturbed(rounds, settings)
    # Where threads waited for a core, its clock may count that and the account not.
    check_clock(used, settings)
    timings = {member.name: _timing(member, used, settings) for member in members}
    timing = timings[CANDIDATE]
    width = statistics.relative_half_width(timing.median)
    if width > HOPELESS:
        raise Unstable(f"the interval of the median is ±{width:.0%} after {len(used)} batches", rounds)
    comparisons = tuple(_compare(member.name, timing, timings[member.name], settings) for member in others)
    facts = candidate.loaded.facts if candidate.loaded else {}
    if found is not None:
        facts = facts | {"other_load": f"{found.others:.2f}", "stolen": f"{found.stolen:.2f}"}
    notes = (
        *_warmed_up(members),
        *_precision(timing, comparisons, settings),
        *_repeated(rounds, used),
        *(found.notes() if found else ()),
        *monitor.notes([each.device for each in rounds]),
    )
    return Measured(
        timing=timing,
        comparisons=comparisons,
        absent=absent,
        notes=notes,
        facts=facts,
        rounds=tuple(rounds),
        first_peak=candidate.loaded.first_peak if candidate.loaded else None,
        conditions=monitor.merged([each.device for each in rounds]),
    )


def _timing(member: Member, rounds: Sequence[Round], settings: Profile) -> Timing:
    if member.loaded is None:
        raise ValueError(f"{member.name} was timed before it was loaded")
    samples = tuple(each.batches[member.name].per_call for each in rounds)
    return Timing(
        samples=samples,
        median=statistics.median(samples, settings.confidence),
        calls_per_batch=member.calls,
        setup_seconds=member.loaded.setup_seconds,
        first_call_seconds=member.loaded.first_call_seconds,
        warmup_seconds=member.calibrated.warmup_seconds if member.calibrated else None,
        host_seconds=member.calibrated.host_seconds if member.calibrated else None,
        latencies=tuple(each for each_round in rounds for each in each_round.batches[member.name].latencies),
    )


def _compare(name: str, candidate: Timing, baseline: Timing, settings: Profile) -> Comparison:
    ratio = statistics.speedup(candidate.samples, baseline.samples, settings.confidence)
    least = statistics.minimum_detectable(candidate.samples, baseline.samples, settings.confidence)
    return Comparison(
        baseline=name,
        timing=baseline,
        speedup=ratio,
        verdict=statistics.verdict(ratio),
        minimum_detectable=least,
    )


def _precision(timing: Timing, comparisons: Sequence[Comparison], settings: Profile) -> tuple[str, ...]:
    """What a reader of the figures has to know about their precision."""
    notes = []
    statements: list[tuple[str, Interval]] = [(f"speed-up over {c.baseline}", c.speedup) for c in comparisons]
    wished = settings.relative_half_width
    for name, interval in statements or [("median", timing.median)]:
        width = statistics.relative_half_width(interval)
        if width > IMPRECISE * wished:
            notes.append(f"imprecise: {name} is known to ±{width:.0%}, wished ±{wished:.0%}")
    trend = statistics.drift(timing.samples)
    if trend is not None:
        notes.append(f"drift: the second half of the batches took {trend:+.1%} longer than the first")
    if len(timing.samples) < settings.batches_at_least:
        notes.append(f"slow: {len(timing.samples)} batches instead of {settings.batches_at_least}")
    return tuple(notes)


def _warmed_up(members: Sequence[Member]) -> tuple[str, ...]:
    """Whose time still drifted when the warm-up was at its end."""
    return tuple(
        f"warm-up: {member.name} still drifted by {member.calibrated.drift:+.1%} at its end, after "
        f"{member.calibrated.warmup_seconds:.2g} s"
        for member in members
        if member.calibrated is not None and member.calibrated.drift is not None
    )


def _repeated(rounds: Sequence[Round], used: Sequence[Round]) -> tuple[str, ...]:
    """How many rounds other processes or the device's clock spoiled."""
    repeated = len(rounds) - len(used)
    kept = len(used) - len(quiet(used))
    waited = sum(waiting(each) > CLEAN for each in used)
    return (
        (f"disturbed: {repeated} rounds repeated",) * (repeated > 0)
        + (f"disturbed: in {waited} of {len(used)} rounds threads waited for a core",) * (waited > 0)
        + (f"disturbed: in {kept - waited} of {len(used)} rounds the device ran otherwise",) * (kept > waited)
    )
