"""One fault: what is put in, and what came of it. The kinds of faults register here."""

import random
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.faults.scene import Ended, Scene


class Skipped(Exception):
    """This machine cannot have this fault; the text says why."""


class Missed(Exception):
    """The run ended before the fault could be put in."""


class Injected(NamedTuple):
    """What was done, and how the run that met it ended."""

    where: str
    """What was hit, and when."""
    ended: Ended | None
    """None: the fault was put into a tree at rest."""
    spoiled: bool = False
    """Measurements were what was damaged: they may be made again."""
    must_fail: bool | None = None
    """Whether the run had to end with an exit code other than 0; None: it may do either."""
    noticed: str | None = None
    """What the next run has to say about it."""


Kind = Callable[[Scene, random.Random], Injected]

KINDS: dict[str, Kind] = {}


def kind(name: str) -> Callable[[Kind], Kind]:
    """Register a kind of fault."""

    def register(function: Kind) -> Kind:
        assert name not in KINDS
        KINDS[name] = function
        return function

    return register


def load_kinds() -> dict[str, Kind]:
    """All of them."""
    from tests.faults import corrupting, database, denying, filling, killing, limits, racing  # noqa: F401

    return KINDS


def one_of(numbers: random.Random, choices: Iterable[str]) -> str:
    """A choice that the seed repeats."""
    return numbers.choice(sorted(choices))
