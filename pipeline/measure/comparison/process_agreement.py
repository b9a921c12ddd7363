"""What several processes say together. In: what each of them said. Out: one statement, and whether to go on.

Where a process's code and data lie in physical memory can make its callable some per cents faster or slower
for as long as it lives. No number of batches shows that, so an interval from one process says nothing of
another one. Each process of a candidate, with a baseline's process of its own, gives one independent ratio
(not so on a GPU, where the baselines' processes serve all, and their places are in each of the ratios alike).
The interval over them is Student's on their logarithms, and never narrower than what the batches of all of
them leave open (two levels, as in Kalibera and Jones 2013, ISMM).
"""

import math
from collections.abc import Sequence
from statistics import stdev

import msgspec

from pipeline.measure import statistics
from pipeline.measure.statistics import NEAR, RESOLUTION, near, verdict
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.results.profiled import ConfidenceInterval, Verdict

FEWEST_BATCHES = 6
"""In one process: fewer have no interval of 95 % for a median."""


def of_one(settings: Profile) -> Profile:
    """One process's share of the budget and the batches, of those that there are whatever comes out."""
    share = settings.processes_at_least
    if share == 1:
        return settings
    least = max(FEWEST_BATCHES, math.ceil(settings.batches_at_least / share))
    return msgspec.structs.replace(
        settings,
        seconds_per_variant=settings.seconds_per_variant / share,
        batches_at_least=least,
        batches_at_most=max(least, math.ceil(settings.batches_at_most / share)),
        relative_half_width=settings.relative_half_width * math.sqrt(share),
    )


def wanted(speedups: Sequence[ConfidenceInterval], settings: Profile) -> int:
    """How many processes a measurement has to be made in, after what the first ones of them said."""
    small = any(verdict(each) != "indistinguishable" and near(each) for each in speedups)
    return settings.processes_at_most if small else settings.processes_at_least


def called(several: Sequence[ConfidenceInterval]) -> Verdict:
    """What speed-ups from independent processes allow to say; of one process no small difference."""
    ratio = combined(several)
    return "indistinguishable" if len(several) == 1 and near(ratio) else verdict(ratio)


def combined(several: Sequence[ConfidenceInterval]) -> ConfidenceInterval:
    """Of equal quantities from independent processes: their geometric mean."""
    if len(several) == 1:
        return several[0]
    logs = [math.log(each.value) for each in several]
    centre = math.fsum(logs) / len(logs)
    confidence = several[0].confidence
    between = statistics.student(confidence, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    below = math.hypot(*(math.log(each.value / each.low) for each in several)) / len(logs)
    above = math.hypot(*(math.log(each.high / each.value) for each in several)) / len(logs)
    return ConfidenceInterval(
        value=math.exp(centre),
        low=math.exp(centre - max(between, below)),
        high=math.exp(centre + max(between, above)),
        confidence=confidence,
    )


def detectable(several: Sequence[float], speedups: Sequence[ConfidenceInterval], settings: Profile) -> float:
    """The relative difference that would have been seen with a probability of 80 %.

    Where further processes would have been asked, that is what the batches of one could have seen.
    `several`: the same of each process alone.
    """
    one = settings.processes_at_most == 1 or settings.processes_at_least > len(several)
    if len(several) == 1 and one:  # nothing small is called, however precise the batches are
        return (1 + several[0]) * (1 + NEAR) / (1 + RESOLUTION) - 1
    if len(several) == 1:
        return several[0]
    unseen = 1 + RESOLUTION
    within = math.hypot(*(math.log((1 + each) / unseen) for each in several)) / len(several)
    degrees = len(speedups) - 1
    # Four fifths of the distribution lie below the quantile that bounds its middle three fifths.
    quantiles = statistics.student(speedups[0].confidence, degrees) + statistics.student(
        2 * statistics.POWER - 1, degrees
    )
    between = quantiles * stdev(math.log(each.value) for each in speedups) / math.sqrt(len(speedups))
    return unseen * math.exp(max(within, between)) - 1
