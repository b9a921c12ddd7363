"""Rounds: one batch of each callable in turn, in random order, until the result is precise enough."""

import random
import time
from collections.abc import Sequence

from pipeline.measure import statistics
from pipeline.measure.device_monitor import Monitor, disturbances
from pipeline.measure.hosting.process_handle import Member
from pipeline.measure.hosting.timed_batch import Batch
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.record import Record
from pipeline.records.results.profiled import Conditions

CANDIDATE = "candidate"
CHECK_EVERY = 4  # rounds between two looks at the interval
FEWEST_ROUNDS = 5  # where one call takes longer than the budget
EXTENSION = 3.0  # a disturbed measurement may take this many budgets,
LAST_EXTENSION = 10.0  # and one that would be thrown away this many
IMPRECISE = 3.0  # times the wished half-width: worth an extension, and a note
HOPELESS = 0.5  # relative half-width of the candidate's own median
CLEAN = 0.1  # share of a batch that its threads may wait for a core before its round is repeated


class Round(Record, frozen=True, kw_only=True):
    """One batch of each member."""

    batches: dict[str, Batch]
    straight: dict[str, Batch] = {}
    """Calls back to back by which clocks are checked, where the timed ones are not such."""
    process: int = 0
    """In which of the candidate's processes, from 0."""
    device: Conditions = Conditions()
    """How the device was since the round before."""


def run_rounds(members: Sequence[Member], settings: Profile, monitor: Monitor) -> list[Round]:
    """One batch of each member per round, in random order, on equal content."""
    numbers = random.SystemRandom()
    rounds: list[Round] = []
    monitor.look()  # what was before is not of a round
    began = time.monotonic()
    while not _enough(rounds, settings, time.monotonic() - began):
        seed = fresh_seed()
        order = numbers.sample(members, len(members))
        batches, straight = {}, {}
        for member in order:
            batches[member.name] = member.batch(seed, others=len(members) - 1)
            alike = member.straight()
            if alike is not None:
                straight[member.name] = alike
        rounds.append(Round(batches=batches, straight=straight, device=monitor.look()))
    return rounds


def undisturbed(rounds: Sequence[Round], settings: Profile) -> list[Round]:
    """Rounds in which nothing was disturbed; where these are too few, those that waited least.

    What is left out is chosen by the kernel's account of waiting and the device's of its clock, never by the
    time that was measured.
    """
    clean = quiet(rounds)
    if len(clean) >= min(settings.batches_at_least, len(rounds)):
        return clean
    limit = sorted(map(waiting, rounds))[: settings.batches_at_least][-1]
    return [each for each in rounds if waiting(each) <= limit][: max(len(clean), settings.batches_at_least)]


def quiet(rounds: Sequence[Round]) -> list[Round]:
    """Rounds in which no thread waited for a core and the device ran as usual."""
    found = disturbances([each.device for each in rounds])
    return [each for each, why in zip(rounds, found, strict=True) if why is None and waiting(each) <= CLEAN]


def waiting(each: Round) -> float:
    """The largest share of its batch that a member waited for a core that somebody else had."""
    return max(batch.disturbed for batch in (*each.batches.values(), *each.straight.values()))


def fresh_seed() -> int:
    """Of the content of one round."""
    return random.SystemRandom().getrandbits(48)


def _enough(rounds: Sequence[Round], settings: Profile, spent: float) -> bool:
    """Whether the wished precision, the budget or the largest number of rounds is reached."""
    if len(rounds) < FEWEST_ROUNDS:
        return False
    if spent > EXTENSION * settings.seconds_per_variant:
        last = spent > LAST_EXTENSION * settings.seconds_per_variant
        return last or _scatter(undisturbed(rounds, settings), settings) <= HOPELESS
    if len(rounds) >= settings.batches_at_most:
        return True
    used = quiet(rounds)
    if len(used) < settings.batches_at_least:
        return False
    over = spent > settings.seconds_per_variant
    if not over and (len(rounds) - settings.batches_at_least) % CHECK_EVERY:
        return False
    return _imprecision(used, settings.confidence) <= settings.relative_half_width * (
        IMPRECISE if over else 1.0
    )


def _imprecision(rounds: Sequence[Round], confidence: float) -> float:
    """The widest interval of all statements that will be made, relative."""
    samples = {name: [each.batches[name].per_call for each in rounds] for name in rounds[0].batches}
    ours = samples.pop(CANDIDATE)
    intervals = [statistics.speedup(ours, theirs, confidence) for theirs in samples.values()]
    return max(map(statistics.relative_half_width, intervals or [statistics.median(ours, confidence)]))


def _scatter(rounds: Sequence[Round], settings: Profile) -> float:
    """Relative half-width of the candidate's own median."""
    samples = [each.batches[CANDIDATE].per_call for each in rounds]
    return statistics.relative_half_width(statistics.median(samples, settings.confidence))
