"""What the interval of a ratio allows to say. In: an interval. Out: a word."""

from pipeline.records.profiled import Interval, Verdict

RESOLUTION = 0.01
"""Relative difference below which nothing is called faster or slower: two processes that run the same code
differ by about as much for as long as they live, through where their pages lie. What that makes beyond it is
for further processes to show (`pipeline.measure.processes`)."""


def verdict(ratio: Interval) -> Verdict:
    """What the interval of a speed-up allows to say."""
    if ratio.low > 1 + RESOLUTION:
        return "faster"
    if ratio.high < 1 / (1 + RESOLUTION):
        return "slower"
    return "indistinguishable"
