"""The page about ceilings: pairs of samples of ours and of another tool in, ratios and verdicts out."""

import collections
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np

from pipeline.records.results.profiled import ConfidenceInterval
from tests.benchmarks.pairs import Pairs

TOLERANCE = 0.10
Verdict = Literal["within", "beyond", "undecided"]
INTRODUCTION = """\
Each round measures each quantity once, in random order: one sample of ours and one of the other tool, one
directly after the other, in random order. A sample is the mean over the same number of bytes for both,
because likwid-bench reports the mean of a run. *Ours* and *theirs* are medians of the rounds, with the best
in brackets. *Ours / theirs* is the median of the rounds' ratios, with a 95 % bootstrap interval. *Within*:
the whole interval is within 10 %; *beyond*: none of it is; *undecided*: it crosses the limit. The next
column says whether the median alone is within 10 %.

Bandwidth is counted as in STREAM: the bytes of the arrays, without write-allocate; 1 GB = 1e9 B. A read from
one place per thread is compared with likwid-bench's `load`, a read from two places with its `ddot`. If there
are several ways to write (ordinary stores, non-temporal stores, memcpy), each side uses its faster one,
chosen before the first round. *Pipeline* is the result of the pipeline's own measurement of the ceilings
right before (a few seconds in total): the best of samples of about a millisecond, over all ways.

A virtual machine shares its memory bandwidth with others. Within a minute it may double or halve, for all
tools. A figure is therefore comparable only with the one measured at the same moment, not with the best of
the column, and not with *pipeline*. The list below the table shows that short and long samples agree.
"""


class Row(Pairs, frozen=True, kw_only=True):
    """One quantity; larger samples are better."""

    name: str
    tool: str
    unit: str
    pipeline: float | None = None
    """As the pipeline found it."""

    @property
    def verdict(self) -> Verdict:
        """What the whole interval says."""
        return verdict(self.ratio)

    @property
    def near(self) -> bool:
        """Whether the median is within the tolerance."""
        return abs(self.ratio.value - 1) <= TOLERANCE


def verdict(ratio: ConfidenceInterval) -> Verdict:
    """Where an interval lies: within the tolerance, beyond it, or across its bound."""
    low, high = 1 - TOLERANCE, 1 + TOLERANCE
    if low <= ratio.low and ratio.high <= high:
        return "within"
    return "beyond" if ratio.high < low or high < ratio.low else "undecided"


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of the comparison, and how many verdicts of each kind there are."""
    yield "| quantity | tool | ours | theirs | ours / theirs | verdict | median within 10 % | pipeline |"
    yield "|---|---|---:|---:|---:|---|---|---:|"
    for row in rows:
        near = "yes" if row.near else "**no**"
        word = row.verdict if row.verdict != "beyond" else "**beyond**"
        pipeline = "" if row.pipeline is None else _figure(row.pipeline, row.unit)
        yield (
            f"| {row.name} | {row.tool} | {_samples(row.ours, row.unit)} | {_samples(row.theirs, row.unit)} "
            f"| {_ratio(row.ratio)} | {word} | {near} | {pipeline} |"
        )
    yield ""
    yield summary(rows)


def summary(rows: Sequence[Row]) -> str:
    """Counts of the verdicts, and of the medians within the tolerance."""
    counts = collections.Counter(row.verdict for row in rows)
    said = ", ".join(f"{counts[each]} {each}" for each in get_args(Verdict))
    near = sum(row.near for row in rows)
    return f"Of {len(rows)} quantities: {said}. The median is within 10 % for {near} of {len(rows)}."


def gains(rows: Sequence[Row]) -> Iterator[str]:
    """What another access of ours gives, against ours that was compared above."""
    for row in rows:
        more, less = _samples(row.ours, row.unit), _samples(row.theirs, row.unit)
        yield f"- {row.name}: {more} against {less} {row.tool}, {_ratio(row.ratio)} times as much."


def _ratio(ratio: ConfidenceInterval) -> str:
    return f"{ratio.value:.2f} ({ratio.low:.2f} – {ratio.high:.2f})"


def _samples(samples: Sequence[float], unit: str) -> str:
    return f"{np.median(samples) / 1e9:.1f} ({max(samples) / 1e9:.1f}) {unit}"


def _figure(value: float, unit: str) -> str:
    return f"{value / 1e9:.1f} {unit}"
