"""Draw points of a space evenly. In: a space, a generator of random numbers. Out: different valid points.

Valid points have numbers: numbers are drawn and turned into points, so nothing is enumerated. Where a rule is
wide, points that break it are drawn too and dropped, which leaves all valid ones equally likely.
"""

import random
from collections.abc import Iterator, Sequence

from pipeline.records.errors import FormulaError
from pipeline.search.spaces.search_space import Point, Space

DRAWS = 2**22  # points that are drawn at most
TOGETHER = 64  # numbers that are drawn at once, at least, where some of them may be dropped
ALL = 2**18  # so few are shuffled rather than drawn


def draw(space: Space, generator: random.Random, count: int) -> list[Point]:
    """So many different valid points, or all.

    Raises
    ------
    FormulaError
        A wide rule is broken by nearly every point that is drawn.
    """
    found: list[Point] = []
    drawn = 0
    total = sum(each.solver.solutions.count for each in space.subspaces)
    wide = any(each.solver.wide for each in space.subspaces)
    for numbers in _numbers(generator, total, max(count, TOGETHER) if wide else count):
        found.extend(_valid(space, numbers))
        drawn += len(numbers)
        if len(found) >= count:
            break
        if drawn >= DRAWS:
            rule = next(rule for each in space.subspaces for rule in each.solver.wide)
            text = f"{len(found)} of {drawn} points drawn keep it: state it over fewer tunables"
            raise FormulaError(f"`{rule}`: too rare to sample: {text}")
    return found[:count]


def _numbers(generator: random.Random, total: int, count: int) -> Iterator[list[int]]:
    """Different numbers below a total in a random order, some at a time, until there are no more."""
    if total <= max(2 * count, ALL):
        everything = list(range(total))
        generator.shuffle(everything)
        for start in range(0, total, max(count, 1)):
            yield everything[start : start + max(count, 1)]
        return
    seen: set[int] = set()
    while count and len(seen) < total:
        fresh: dict[int, None] = {}
        while len(fresh) < min(count, total - len(seen)):
            number = generator.randrange(total)
            if number not in seen:
                fresh[number] = None
        seen.update(fresh)
        yield list(fresh)


def _valid(space: Space, numbers: Sequence[int]) -> list[Point]:
    """The valid ones among the solutions of these numbers, in their order."""
    placed: dict[int, Point] = {}
    first = 0
    for each in space.subspaces:
        solver = each.solver
        beyond = first + solver.solutions.count
        mine = [(place, number - first) for place, number in enumerate(numbers) if first <= number < beyond]
        first = beyond
        rows = solver.solutions.rows([number for _, number in mine])
        keep = solver.keeps_wide(rows)
        places = [place for (place, _), kept in zip(mine, keep, strict=True) if kept]
        for place, point in zip(places, each.named(rows[keep]), strict=True):
            placed[place] = (each.implementation, point)
    return [placed[place] for place in sorted(placed)]
