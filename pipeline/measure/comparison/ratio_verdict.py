"""What the interval of a ratio allows to say. In: an interval. Out: a word."""

from pipeline.records.results.profiled import ConfidenceInterval, Verdict

RESOLUTION = 0.01
"""Relative difference below which nothing is called faster or slower: two processes that run the same code
differ by about as much for as long as they live, through where their pages lie. What that makes beyond it is
for further processes to show (`pipeline.measure.comparison.process_agreement`)."""
NEAR = 0.10
"""Relative difference up to which equals may seem different because of where two processes lie: 3 to 6 % were
seen of torch's calls of some microseconds."""


def near(ratio: ConfidenceInterval) -> bool:
    """Whether the interval reaches to where a difference may be one of places alone."""
    return ratio.low < 1 + NEAR and ratio.high > 1 / (1 + NEAR)


def verdict(ratio: ConfidenceInterval) -> Verdict:
    """What the interval of a speed-up allows to say."""
    if ratio.low > 1 + RESOLUTION:
        return "faster"
    if ratio.high < 1 / (1 + RESOLUTION):
        return "slower"
    return "indistinguishable"
