"""What the rounds say: intervals, verdicts, notes. In: each process's rounds. Out: Measured, or Unstable."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from pipeline.backends.devices.disturbance import Disturbance
from pipeline.measure import device_monitor, statistics
from pipeline.measure.comparison import process_agreement
from pipeline.measure.comparison.rounds import (
    CANDIDATE,
    CLEAN,
    HOPELESS,
    IMPRECISE,
    Round,
    quiet,
    undisturbed,
    waiting,
)
from pipeline.measure.hosting.call_costs import Examined
from pipeline.measure.hosting.clock_check import check_clock
from pipeline.measure.hosting.process_handle import Member
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.record import Record
from pipeline.records.results.profiled import (
    AbsentBaseline,
    Comparison,
    Conditions,
    ConfidenceInterval,
    Peak,
    Timing,
    Unmeasured,
)

_DRIFT = "drift: the second half of the batches took {:+.1%} longer than the first"


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


class Once(Record, frozen=True, kw_only=True):
    """What one process of the candidate showed, compared with its baselines'."""

    timings: dict[str, Timing]
    """By the member's name."""
    comparisons: tuple[Comparison, ...]
    facts: dict[str, str]
    notes: tuple[str, ...]
    rounds: tuple[Round, ...]
    used: tuple[Round, ...]
    """Those that were left in."""
    first_peak: Peak | None


def once(
    members: Sequence[Member], rounds: Sequence[Round], settings: Profile, found: Disturbance | None
) -> Once:
    """Intervals and verdicts from one process's samples, after the candidate's clock was checked.

    Raises
    ------
    MemberGone
        Its clock is false.
    ShortBatches
        Its clock cannot be checked.
    Unstable
        The samples scatter beyond use.
    """
    candidate, *others = members
    used = undisturbed(rounds, settings)
    # Where threads waited for a core, its clock may count that and the account not.
    check_clock(used, settings, candidate.kind)
    timings = {member.name: _timing(member, used, settings) for member in members}
    timing = timings[CANDIDATE]
    width = statistics.relative_half_width(timing.median)
    if width > HOPELESS:
        wide = "the interval of the median is wider than the median: not to be relied on"
        raise Unstable(f"{wide} ({len(used)} batches)", rounds)
    facts = candidate.loaded.facts if candidate.loaded else {}
    if found is not None:
        facts = facts | {"other_load": f"{found.others:.2f}", "stolen": f"{found.stolen:.2f}"}
    trend = statistics.drift(timing.samples)
    return Once(
        timings=timings,
        comparisons=tuple(_compare(member.name, timing, timings[member.name], settings) for member in others),
        facts=facts,
        notes=(
            *_warmed_up(members),
            *((_DRIFT.format(trend),) if trend is not None else ()),
            *(found.notes() if found else ()),
        ),
        rounds=tuple(rounds),
        used=tuple(used),
        first_peak=candidate.loaded.first_peak if candidate.loaded else None,
    )


def together(several: Sequence[Once], settings: Profile, absent: tuple[AbsentBaseline, ...]) -> Measured:
    """What the processes say together; facts are the last one's, and what happens once is the first one's."""
    first, last = several[0], several[-1]
    timing = _joined([each.timings[CANDIDATE] for each in several])
    compared = [each for part in several for each in part.comparisons]
    comparisons = tuple(
        _comparison([each for each in compared if each.baseline == name], settings)
        for name in (each.baseline for each in first.comparisons)
    )
    rounds = numbered([part.rounds for part in several])
    used = [each for part in several for each in part.used]
    looks = [each.device for each in rounds]
    notes = (
        *dict.fromkeys(note for part in several for note in part.notes),
        *_lacking(several),
        *_launched_otherwise(timing, comparisons),
        *_precision(timing, comparisons, settings),
        *_repeated(rounds, used),
        *device_monitor.notes(looks),
    )
    return Measured(
        timing=timing,
        comparisons=comparisons,
        absent=tuple(each for each in absent if each.baseline not in first.timings),
        notes=notes,
        facts=last.facts,
        rounds=tuple(rounds),
        first_peak=first.first_peak,
        conditions=device_monitor.merged(looks),
    )


def numbered(several: Sequence[Sequence[Round]]) -> list[Round]:
    """The rounds of all processes, each with its process's number."""
    return [
        msgspec.structs.replace(each, process=number)
        for number, rounds in enumerate(several)
        for each in rounds
    ]


def _lacking(several: Sequence[Once]) -> tuple[str, ...]:
    """Baselines that broke down for good before the last process."""
    found = Counter(each.baseline for part in several for each in part.comparisons)
    return tuple(
        f"compared with {name} in {count} of {len(several)} processes: it broke down"
        for name, count in found.items()
        if count < len(several)
    )


def _joined(several: Sequence[Timing]) -> Timing:
    if len(several) == 1:
        return several[0]
    return msgspec.structs.replace(
        several[0],
        samples=tuple(sample for each in several for sample in each.samples),
        processes=tuple(len(each.samples) for each in several),
        median=process_agreement.combined([each.median for each in several]),
        latencies=tuple(latency for each in several for latency in each.latencies),
    )


def _comparison(several: Sequence[Comparison], settings: Profile) -> Comparison:
    """With one baseline; a process in which it broke down for good has none."""
    speedups = [each.speedup for each in several]
    least = [each.minimum_detectable for each in several if each.minimum_detectable is not None]
    return Comparison(
        baseline=several[0].baseline,
        timing=_joined([each.timing for each in several]),
        speedup=process_agreement.combined(speedups),
        verdict=process_agreement.called(speedups),
        minimum_detectable=process_agreement.detectable(least, speedups, settings),
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
        launch=member.calibrated.launch if member.calibrated else None,
        latencies=tuple(each for each_round in rounds for each in each_round.batches[member.name].latencies),
    )


def _compare(name: str, candidate: Timing, baseline: Timing, settings: Profile) -> Comparison:
    ratio = statistics.speedup(candidate.samples, baseline.samples, settings.confidence)
    least = statistics.minimum_detectable(candidate.samples, baseline.samples, settings.confidence)
    return Comparison(
        baseline=name,
        timing=baseline,
        speedup=ratio,
        verdict=process_agreement.called([ratio]),
        minimum_detectable=least,
    )


def _launched_otherwise(timing: Timing, comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """With whom the candidate does not share the way of launching."""
    return tuple(
        f"launched as {timing.launch}, {each.baseline} as {each.timing.launch}"
        for each in comparisons
        if each.timing.launch != timing.launch
    )


def _precision(timing: Timing, comparisons: Sequence[Comparison], settings: Profile) -> tuple[str, ...]:
    """What a reader of the figures has to know about their precision."""
    notes = []
    statements: list[tuple[str, ConfidenceInterval]] = [
        (f"speed-up over {c.baseline}", c.speedup) for c in comparisons
    ]
    wished = settings.relative_half_width
    for name, interval in statements or [("median", timing.median)]:
        width = statistics.relative_half_width(interval)
        if width > IMPRECISE * wished:
            known = f"known to ±{width:.0%}, requested were ±{wished:.0%}"
            wide = "its interval is wider than the value: not to be relied on"
            notes.append(f"imprecise: {name}: {wide if width > HOPELESS else known}")
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
        (f"disturbed: {repeated} round{'s' * (repeated != 1)} repeated",) * (repeated > 0)
        + (f"disturbed: in {waited} of {len(used)} rounds threads waited for a core",) * (waited > 0)
        + (f"disturbed: in {kept - waited} of {len(used)} rounds the device ran otherwise",) * (kept > waited)
    )
