"""The page about ceilings: pairs of samples of ours and of another tool in, ratios and verdicts out."""

import collections
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import numpy as np

from pipeline.records.profiled import Interval
from tests.benchmarks.pairs import Pairs

TOLERANCE = 0.10
Verdict = Literal["within", "beyond", "undecided"]
INTRODUCTION = """\
In every round each quantity is taken once, in random order: one sample of ours, one of the other tool, right
one after the other, a coin deciding which comes first. A sample is the mean over equally many bytes on both
sides, because likwid-bench says the mean of a run. *Ours* and *theirs* are the medians of the rounds, and in
brackets the best. *Ours / theirs* is the median of the rounds' ratios, with a bootstrap interval of 95 %.
*Within*: the whole interval lies within 10 %; *beyond*: none of it does; *undecided*: it straddles the bound.
Beside it whether the median alone is within 10 %.

Bandwidth as STREAM counts it: the bytes of the arrays, no write-allocate; 1 GB = 1e9 B. Like is compared with
like: a read from one place per thread with likwid-bench's `load`, from two with its `ddot`. Where there are
several ways to write (ordinary stores, stores past the caches, memcpy), each side takes its faster one,
chosen before the first round. *Pipeline* is what the pipeline's own measurement of the ceilings, a few
seconds in all, found right before: the best of samples of about a millisecond, of all ways.

A virtual machine shares its memory with others: within a minute its bandwidth may double or halve, for all
tools alike. So a figure of one moment is comparable with another one of that moment only: with the sample
beside it, not with the best of the column, nor with *pipeline*. That short samples find what long ones do is
shown below the table.
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


def verdict(ratio: Interval) -> Verdict:
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


def _ratio(ratio: Interval) -> str:
    return f"{ratio.value:.2f} ({ratio.low:.2f} – {ratio.high:.2f})"


def _samples(samples: Sequence[float], unit: str) -> str:
    return f"{np.median(samples) / 1e9:.1f} ({max(samples) / 1e9:.1f}) {unit}"


def _figure(value: float, unit: str) -> str:
    return f"{value / 1e9:.1f} {unit}"
