"""Rounds: time a candidate and its baselines in turn, in random order, until the result is precise enough."""

import os
import random
import time
from collections.abc import Callable, Sequence

import numpy as np

from pipeline.measure import statistics
from pipeline.measure.baselines import Baselines
from pipeline.measure.disturbance import Disturbance, disturbance, load
from pipeline.measure.member import Batch, Member, MemberGone
from pipeline.records.outcome import Outcome
from pipeline.records.profiled import AbsentBaseline, Comparison, Interval, Timing
from pipeline.records.record import Record
from pipeline.records.settings import Profile

CANDIDATE = "candidate"
CHECK_EVERY = 4  # rounds between two looks at the interval
FEWEST_ROUNDS = 5  # where one call takes longer than the budget
EXTENSION = 3.0  # a disturbed measurement may take this many budgets,
LAST_EXTENSION = 10.0  # and one that would be thrown away this many
IMPRECISE = 3.0  # times the wished half-width: worth an extension, and a note
HOPELESS = 0.5  # relative half-width of the candidate's own median
CLEAN = 0.1  # share of a batch that its threads may wait for a core before its round is repeated
COMPUTED_SHARE = 0.05  # of a batch, and
COMPUTED_SECONDS = 0.0003  # CPU time that the main thread may use beyond what its clock says: two messages
UNSEEN_SHARE = 0.2  # of a batch, and
UNSEEN_SECONDS = 0.002  # that may pass outside the child's clock beyond what passes for its baselines

Round = dict[str, Batch]
"""One batch of each member."""


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


class Unstable(Exception):
    """The samples scatter beyond use; all rounds are kept."""

    def __init__(self, reason: str, rounds: Sequence[Round]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.rounds = rounds


def measure(start: Callable[[], Member], baselines: Baselines, settings: Profile) -> Measured:
    """Time a candidate; `start` starts its process, again where a baseline broke down in between.

    Raises
    ------
    MemberGone
        The candidate refused, crashed, hung, or did not tell the truth about its time.
    Unstable
        The samples scatter beyond use.
    """
    while True:
        others = baselines.members()  # before the candidate: its time limit runs from its start
        candidate = start()
        try:
            candidate.load(_seed(), settings)
            before, own = load(), _cpu_seconds(candidate, *others)
            rounds = run_rounds((candidate, *others), settings)
            own = _cpu_seconds(candidate, *others) - own
            found = disturbance(before, load(), own)
        except MemberGone as gone:
            if gone.name == CANDIDATE:
                raise
            baselines.lost(gone)
            continue
        finally:
            candidate.stop()
        return summarize((candidate, *others), rounds, settings, baselines.absent(), found)


def run_rounds(members: Sequence[Member], settings: Profile) -> list[Round]:
    """One batch of each member per round, in random order, on equal content."""
    numbers = random.SystemRandom()
    rounds: list[Round] = []
    began = time.monotonic()
    while not _enough(rounds, settings, time.monotonic() - began):
        seed = _seed()
        order = numbers.sample(members, len(members))
        rounds.append({member.name: member.batch(seed) for member in order})
    return rounds


def undisturbed(rounds: Sequence[Round], settings: Profile) -> list[Round]:
    """Rounds in which no thread waited for a core; where these are too few, those that waited least.

    What is left out is chosen by the kernel's account of waiting, never by the time that was measured.
    """
    clean = [each for each in rounds if waiting(each) <= CLEAN]
    if len(clean) >= min(settings.batches_at_least, len(rounds)):
        return clean
    limit = sorted(map(waiting, rounds))[: settings.batches_at_least][-1]
    return [each for each in rounds if waiting(each) <= limit][: max(len(clean), settings.batches_at_least)]


def waiting(each: Round) -> float:
    """The largest share of its batch that a member waited for a core."""
    return max(batch.waited / batch.seconds for batch in each.values())


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
    check_clock(
        used, settings
    )  # where threads waited for a core, its clock may count that and the account not
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
        *_precision(timing, comparisons, settings),
        *_quiet(rounds, used),
        *(found.notes() if found else ()),
    )
    return Measured(
        timing=timing,
        comparisons=comparisons,
        absent=absent,
        notes=notes,
        facts=facts,
        rounds=tuple(rounds),
    )


def _enough(rounds: Sequence[Round], settings: Profile, spent: float) -> bool:
    """Whether the wished precision, the budget or the largest number of rounds is reached."""
    if len(rounds) < FEWEST_ROUNDS:
        return False
    if spent > EXTENSION * settings.seconds_per_variant:
        last = spent > LAST_EXTENSION * settings.seconds_per_variant
        return last or _scatter(undisturbed(rounds, settings), settings) <= HOPELESS
    if len(rounds) >= settings.batches_at_most:
        return True
    used = [each for each in rounds if waiting(each) <= CLEAN]
    if len(used) < settings.batches_at_least:
        return False
    over = spent > settings.seconds_per_variant
    if not over and (len(rounds) - settings.batches_at_least) % CHECK_EVERY:
        return False
    return _imprecision(used, settings.confidence) <= settings.relative_half_width * (
        IMPRECISE if over else 1.0
    )


def check_clock(rounds: Sequence[Round], settings: Profile) -> None:
    """Compare what the candidate's clock says with the kernel's account of its CPU time, and with our clock.

    The account is exact, but does not see time in which the main thread sleeps; our clock sees all time, with
    the delays of two messages. The baselines, whose code we trust, show how long these are on this machine at
    this moment. Flushing a cache is left out of a batch's time, so that nothing can be said of it then.

    Raises
    ------
    MemberGone
        Outcome `tampered`: much more time passed than the candidate's clock says.
    """
    if settings.flush_cache:
        return
    ours = [each[CANDIDATE] for each in rounds]
    theirs = [batch.unseen for each in rounds for name, batch in each.items() if name != CANDIDATE]
    told = float(np.median([batch.seconds for batch in ours]))
    computed = float(np.median([batch.computed for batch in ours]))
    # The lower quartile: other processes delay some messages, a false clock hides time in every batch.
    unseen = float(np.quantile([batch.unseen for batch in ours], 0.25))
    usual = float(np.quantile(theirs, 0.75)) if theirs else 0.0
    if computed > COMPUTED_SECONDS + (1 + COMPUTED_SHARE) * told:
        reason = f"its clock says {told:.3g} s for a batch that took {computed:.3g} s of CPU time"
        raise MemberGone(CANDIDATE, Outcome.TAMPERED, reason)
    # On a busy machine its clock may count time in the run queue as well, by which a false one is hidden.
    hidden = float(np.quantile([_hidden(batch) for batch in ours], 0.25))
    others = [_hidden(batch) for each in rounds for name, batch in each.items() if name != CANDIDATE]
    least = max(0.0, float(np.quantile(others, 0.75))) if others else 0.0
    if hidden - least > COMPUTED_SECONDS + COMPUTED_SHARE * told:
        reason = (
            f"its clock says {told:.3g} s for a batch that was running or ready for {told + hidden:.3g} s"
        )
        raise MemberGone(CANDIDATE, Outcome.TAMPERED, reason)
    if unseen - usual > UNSEEN_SECONDS + UNSEEN_SHARE * told:
        reason = f"its clock says {told:.3g} s for a batch that took {told + unseen:.3g} s"
        raise MemberGone(CANDIDATE, Outcome.TAMPERED, reason)


def _hidden(batch: Batch) -> float:
    """Seconds in which its main thread ran or was ready to, beyond what its clock says."""
    return batch.computed + batch.queued - batch.seconds


def _timing(member: Member, rounds: Sequence[Round], settings: Profile) -> Timing:
    if member.loaded is None:
        raise ValueError(f"{member.name} was timed before it was loaded")
    samples = tuple(each[member.name].per_call for each in rounds)
    return Timing(
        samples=samples,
        median=statistics.median(samples, settings.confidence),
        calls_per_batch=member.calls,
        setup_seconds=member.loaded.setup_seconds,
        first_call_seconds=member.loaded.first_call_seconds,
    )


def _compare(name: str, candidate: Timing, baseline: Timing, settings: Profile) -> Comparison:
    ratio = statistics.speedup(candidate.samples, baseline.samples, settings.confidence)
    return Comparison(baseline=name, timing=baseline, speedup=ratio, verdict=statistics.verdict(ratio))


def _imprecision(rounds: Sequence[Round], confidence: float) -> float:
    """The widest interval of all statements that will be made, relative."""
    samples = {name: [each[name].per_call for each in rounds] for name in rounds[0]}
    ours = samples.pop(CANDIDATE)
    intervals = [statistics.speedup(ours, theirs, confidence) for theirs in samples.values()]
    return max(map(statistics.relative_half_width, intervals or [statistics.median(ours, confidence)]))


def _scatter(rounds: Sequence[Round], settings: Profile) -> float:
    """Relative half-width of the candidate's own median."""
    samples = [each[CANDIDATE].per_call for each in rounds]
    return statistics.relative_half_width(statistics.median(samples, settings.confidence))


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


def _quiet(rounds: Sequence[Round], used: Sequence[Round]) -> tuple[str, ...]:
    """How many rounds other processes spoiled."""
    repeated = len(rounds) - len(used)
    kept = sum(waiting(each) > CLEAN for each in used)
    return (f"disturbed: {repeated} rounds repeated",) * (repeated > 0) + (
        f"disturbed: in {kept} of {len(used)} rounds threads waited for a core",
    ) * (kept > 0)


def _cpu_seconds(*members: Member) -> float:
    """CPU time of this process and of the members."""
    own = os.times()
    return own.user + own.system + sum(member.cpu_seconds() for member in members)


def _seed() -> int:
    return random.SystemRandom().getrandbits(48)
