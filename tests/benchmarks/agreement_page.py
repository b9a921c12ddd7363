"""The page about agreement: pairs of samples of ours and of another harness in, verdicts and Markdown out."""

import collections
import math
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import msgspec
import numpy as np

from pipeline.measure import statistics
from pipeline.records.results.profiled import ConfidenceInterval
from tests.benchmarks.all_resamples import chance
from tests.benchmarks.pairs import CONFIDENCE, Pairs

Verdict = Literal["agrees", "differs", "undecided"]
TOO_WIDE = 0.1
"""Relative width of the ratio's interval beyond which it shows no agreement."""
FEWEST = 6
"""Pairs below which a bootstrap interval of a median is not worth its name: all of them on one side of the
median has a chance of 1 in 32."""
DISCUSSION = """\
*Ours* and *theirs* are medians over the rounds with 95 % bootstrap intervals; for the other harness, of each
round's median. *Ours / theirs* is the median of the rounds' ratios, with its interval. *Agrees* is the
verdict that the pipeline would give for this ratio: indistinguishable, that is, the interval includes
differences below 1 %. *Undecided*: it includes them but is wider than 10 %, or fewer than 6 rounds were left
in which no thread waited for a core. Kernels with such a wide interval got more rounds in new processes
while time was left; this does not depend on which time is longer.

The family-wise level is the one at which, with a probability of 95 %, no comparison on this page differs by
chance: Holm's procedure (1979, Scand. J. Statist. 6) on the share of all resamples that are compatible with
equality. It is valid for dependent comparisons (two of them share each of our samples).
"""
OF_A_CPU = """\
Equal for both harnesses: the process, its threads, cores, priority and allocator, the callable, its content
and its place in memory, up to 10 ms of untimed calls before each sample, and garbage collection (left on for
timeit, which `torch.utils.benchmark` uses). Different: the clock, and the calls per sample. Ours are batches
of at least 4 ms, torch's are blocks in which the clock costs less than 0.1 %, and pytest-benchmark's are a
few calls. A disturbance of a millisecond is therefore averaged into one of our samples, and removed by a
median over theirs.
"""


class Row(Pairs, frozen=True, kw_only=True):
    """One callable under one harness; samples are seconds per call."""

    kernel: str
    callable: str
    harness: str

    @property
    def verdict(self) -> Verdict:
        """Whether the pipeline would call them indistinguishable."""
        return "undecided" if len(self.ours) < FEWEST else verdict(self.ratio)

    @property
    def open(self) -> bool:
        """Whether more rounds could show more, whatever these show."""
        return len(self.ours) < FEWEST or _wide(self.ratio)

    @property
    def chance(self) -> float:
        """How likely so large a difference is by chance; 1 of too few pairs."""
        return 1.0 if len(self.ours) < FEWEST else chance(self.ratios)


def longer(row: Row, more: Row) -> Row:
    """All rounds of the same comparison.

    Raises
    ------
    ValueError
        It is another one.
    """
    ours, theirs = ((each.kernel, each.callable, each.harness) for each in (row, more))
    if ours != theirs:
        raise ValueError(f"{ours} and {theirs} are two comparisons")
    return msgspec.structs.replace(row, ours=row.ours + more.ours, theirs=row.theirs + more.theirs)


def verdict(ratio: ConfidenceInterval) -> Verdict:
    """Whether the pipeline would call them indistinguishable; too wide an interval shows no agreement."""
    if statistics.verdict(ratio) != "indistinguishable":
        return "differs"
    return "undecided" if _wide(ratio) else "agrees"


def family_wise(rows: Sequence[Row]) -> list[Row]:
    """Those that differ at 95 % for all of them together, the clearest first."""
    found = []
    ordered = sorted(((row.chance, row) for row in rows), key=lambda pair: pair[0])
    for rank, (chance_of_row, row) in enumerate(ordered):
        if chance_of_row > (1 - CONFIDENCE) / (len(rows) - rank):
            break
        found.append(row)
    return found


def by_chance(count: int) -> int:
    """As many as may differ of so many comparisons of equals, each at 95 %, in 95 of 100 pages."""
    rate, known = 1 - CONFIDENCE, 0.0
    for number in range(count + 1):
        known += math.comb(count, number) * rate**number * (1 - rate) ** (count - number)
        if known >= CONFIDENCE:
            return number
    return count


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of the comparison, how many verdicts of each kind there are, and what all say together."""
    yield "| kernel | callable | harness | rounds | ours | theirs | ours / theirs | verdict |"
    yield "|---|---|---|---:|---:|---:|---|---|"
    for row in rows:
        yield (
            f"| {row.kernel} | {row.callable} | {row.harness} | {len(row.ours)} | {_figures(row)} "
            f"| {row.verdict} |"
        )
    yield ""
    yield from summary(rows)


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Counts, each comparison by itself and all together."""
    counts = collections.Counter(row.verdict for row in rows)
    yield f"Of {len(rows)}: " + ", ".join(f"{counts[each]} {each}" for each in get_args(Verdict)) + "."
    expected = len(rows) * (1 - CONFIDENCE)
    together = family_wise(rows)
    names = ", ".join(f"{row.kernel} {row.callable} ({row.harness})" for row in together)
    yield (
        f"Of {len(rows)} comparisons of equals at 95 % each, about {expected:.1f} differ by chance, up to "
        f"{by_chance(len(rows))} in 95 of 100 pages; at the family-wise level of 95 %, "
        f"{len(together)} of these here differ{': ' + names if names else ''}."
    )
    ratios = [row.ratio.value for row in rows if len(row.ours) >= FEWEST]
    if ratios:
        yield f"All ratios together: median {np.median(ratios):.3f}."


def _wide(ratio: ConfidenceInterval) -> bool:
    return ratio.high / ratio.low > 1 + TOO_WIDE


def _figures(row: Row) -> str:
    if len(row.ours) < FEWEST:
        return "| |"
    ratio = row.ratio
    return (
        f"{_microseconds(row.ours)} | {_microseconds(row.theirs)} "
        f"| {ratio.value:.3f} ({ratio.low:.3f} – {ratio.high:.3f})"
    )


def _microseconds(samples: tuple[float, ...]) -> str:
    found = statistics.median([1e6 * each for each in samples], CONFIDENCE)
    return f"{found.value:.2f} µs ({found.low:.2f} – {found.high:.2f})"
