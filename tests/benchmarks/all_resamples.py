"""The median over all resamples at once, without drawing any: values in, exact shares out."""

import math
from collections.abc import Sequence

from pipeline.measure.statistics import RESOLUTION


def chance(ratios: Sequence[float]) -> float:
    """The level at which the percentile interval of the median would just leave room for equals.

    Twice the share of all resamples whose median does not lie beyond the resolution of the verdicts (Efron
    and Tibshirani 1993, chapter 15); at least the sign test's level where all are on one side, of which
    resamples of few rounds know nothing. Below 5 % the verdict is `differs`, but for chance in its resamples.
    """
    margin = 1 + RESOLUTION
    sides = share_up_to(ratios, margin), share_up_to([-each for each in ratios], -1 / margin)
    return min(1.0, max(2 * min(sides), 2.0 ** (1 - len(ratios))))


def share_up_to(values: Sequence[float], limit: float) -> float:
    """Share of all resamples (with replacement) whose median is at most the limit, exactly.

    A resample's middle is at most the i-th smallest value where enough of its draws are: a binomial number.
    Of an even count the median lies between two middles, and each pair of these has its own probability.
    """
    count, ordered = len(values), sorted(values)
    half = (count + 1) // 2
    enough = [_at_least(half, count, rank / count) for rank in range(count + 1)]
    if count % 2:
        return enough[sum(each <= limit for each in ordered)]
    more = [_at_least(half + 1, count, rank / count) for rank in range(count + 1)]
    pairs = math.comb(count, half)
    lower = [(rank / count) ** half for rank in range(count + 1)]  # half of the draws at either end
    total = 0.0
    for i, low in enumerate(ordered):
        if low <= limit:
            total += more[i + 1] - enough[i] + pairs * lower[i] * lower[count - i - 1]
        for j in range(i + 1, count):
            if (low + ordered[j]) / 2 <= limit:
                total += pairs * (lower[i + 1] - lower[i]) * (lower[count - j] - lower[count - j - 1])
    return min(1.0, max(0.0, total))


def _at_least(number: int, count: int, rate: float) -> float:
    """Of so many draws, each a hit at this rate."""
    each = (math.comb(count, n) * rate**n * (1 - rate) ** (count - n) for n in range(number, count + 1))
    return sum(each)
