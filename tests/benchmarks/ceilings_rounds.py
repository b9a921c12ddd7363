"""Rounds of two-sided samples: quantities that both sides can measure in, one row of pairs for each out."""

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from tests.benchmarks import likwid
from tests.benchmarks.ceilings_page import Row

FEWEST = 6
"""Rounds, however long they take: all ratios on one side of the median have a chance of 1 in 32."""
TRIALS = 2  # of each way, to choose the faster one
SIDE_BY_SIDE = 8  # runs of likwid-bench that sleep at once
Sample = Callable[[], float]
Name = TypeVar("Name", str, int)


class Quantity(NamedTuple):
    """What both sides can measure; larger is better."""

    name: str
    tool: str
    unit: str
    ours: Sample
    theirs: Sample
    pipeline: float | None = None
    """As the pipeline found it."""


def sampled(quantities: Sequence[Quantity], seconds: float) -> list[Row]:
    """Round after round all quantities in random order, of each ours and theirs in turn.

    One that has to be prepared is so with some others, before any of these is measured.
    """
    found: dict[str, dict[str, list[float]]] = {each.name: {"ours": [], "theirs": []} for each in quantities}
    began, rounds = time.monotonic(), 0
    while rounds < FEWEST or (time.monotonic() - began) * (rounds + 1) / rounds < seconds:
        order = random.sample(quantities, len(quantities))
        for begin in range(0, len(order), SIDE_BY_SIDE):
            few = order[begin : begin + SIDE_BY_SIDE]
            prepare(each.theirs for each in few)
            for quantity in few:
                for side in random.sample(("ours", "theirs"), 2):
                    found[quantity.name][side].append(getattr(quantity, side)())
        rounds += 1
    return [
        Row(
            name=each.name,
            tool=each.tool,
            unit=each.unit,
            pipeline=each.pipeline,
            ours=tuple(found[each.name]["ours"]),
            theirs=tuple(found[each.name]["theirs"]),
        )
        for each in quantities
    ]


def fastest(ways: Mapping[Name, Sample]) -> Name:
    """The one of which a few samples have the best; of one alone none is taken."""
    if len(ways) == 1:
        return next(iter(ways))
    best = dict.fromkeys(ways, 0.0)
    for _ in range(TRIALS):
        prepare(ways.values())
        best = {name: max(best[name], sample()) for name, sample in ways.items()}
    return max(best, key=best.__getitem__)


def prepare(samples: Iterable[Sample]) -> None:
    """What takes time and disturbs, and is not measured: all that can be done before the samples."""
    runs = [sample for sample in samples if isinstance(sample, likwid.Run)]
    for run in runs:
        run.prepare()
    for run in runs:
        run.held()
