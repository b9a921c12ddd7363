"""Rounds of two-sided samples: quantities that both sides can measure in, one row of pairs for each out."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pipeline.backends.devices.cpu.ceilings import PAUSE
from tests.benchmarks.ceilings_page import Row

FEWEST = 6
"""Rounds, however long they take: all ratios on one side of the median have a chance of 1 in 32."""
TRIALS = 2  # of each way, to choose the faster one
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

    Before each sample there is a pause, in which threads of the one before stop to spin.
    """
    found: dict[str, dict[str, list[float]]] = {each.name: {"ours": [], "theirs": []} for each in quantities}
    began, rounds = time.monotonic(), 0
    while rounds < FEWEST or (time.monotonic() - began) * (rounds + 1) / rounds < seconds:
        for quantity in random.sample(quantities, len(quantities)):
            for side in random.sample(("ours", "theirs"), 2):
                time.sleep(PAUSE)
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
        best = {name: max(best[name], sample()) for name, sample in ways.items()}
    return max(best, key=best.__getitem__)
