"""The search space of a task: the tunables that the optimization leaves, and the points that are valid.

The rules are not tried point by point: `constraint_solver` counts and numbers the valid points.
"""

import functools
import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.records.configuration.kernel import Constraint, Implementation, Tunable, TunableValue
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.errors import FormulaError
from pipeline.records.formula import ELEMENT_BYTES
from pipeline.records.planning.problem import Problem
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import Record
from pipeline.records.results.variant import Pruned
from pipeline.records.search.recorded_space import RecordedSpace

DRAWS = 2**22  # points that are drawn at most
TOGETHER = 64  # numbers that are drawn at once, at least, if some of them may be dropped
ALL = 2**18  # so few are shuffled rather than drawn
TRIED = 2**16
"""Points that are tried at most for the nearest one that is valid."""

if TYPE_CHECKING:
    from pipeline.search.spaces.constraint_solver import Rows, Solver

Tunables = dict[str, TunableValue]
Point = tuple[str, Tunables]
"""Implementation and the values of its tunables."""


class Subspace(Record, frozen=True, kw_only=True, dict=True):
    """The space of one implementation."""

    implementation: str
    values: dict[str, tuple[TunableValue, ...]]
    """Tunable -> the values that it may take here; one where it does not vary."""
    default: Tunables
    constraints: tuple[Constraint, ...]
    constants: Tunables
    """Names for the rules in addition to the tunables: dimensions, limits, attributes, `itemsize`."""
    techniques: dict[str, tuple[str, TunableValue]] = {}
    """Tunable -> the technique that it expresses, and the value that switches it off."""

    @property
    def size(self) -> int:
        """Number of points before the constraints."""
        return math.prod(len(values) for values in self.values.values())

    @property
    def count(self) -> int:
        """Number of valid points, exact. Visits no point, unless a rule is wide (docs/guide/spaces.md)."""
        return self.solver.count

    @functools.cached_property
    def solver(self) -> "Solver":
        """The solver of its rules, built once.

        Raises
        ------
        FormulaError
            A rule names what is not there, or cannot be evaluated.
        """
        from pipeline.search.spaces.constraint_solver import Solver

        return Solver(self.values, [each.rule for each in self.constraints], self.constants)

    def points(self) -> list[Tunables]:
        """All valid points, in the order of the product of the declared values."""
        import numpy as np

        rows = np.concatenate([*self.solver.blocks(), np.zeros((0, len(self.values)), dtype=np.int64)])
        ordered = rows[np.lexsort(rows.T[::-1])] if self.values else rows
        return self.named(ordered)

    def has_point(self) -> bool:
        """Whether any point is valid."""
        return any(len(rows) for rows in self.solver.blocks()) if self.solver.wide else self.count > 0

    def contains(self, tunables: Mapping[str, TunableValue]) -> bool:
        """Whether a point is valid: every tunable has one of its values, and all rules hold."""
        row = self._row(tunables)
        return row is not None and bool(self.solver.allows(_rows([row]))[0])

    def neighbors(self, tunables: Mapping[str, TunableValue], reach: int | None = None) -> list[Tunables]:
        """The valid points that differ in one tunable, in the order of tunables and values.

        With `reach` only those whose value is at most so many places away, in the order declared. The point
        itself need not be valid, but has to have declared values.
        """
        row = self._row(tunables)
        if row is None:
            return []
        near = [
            [*row[:place], number, *row[place + 1 :]]
            for place, values in enumerate(self.values.values())
            for number in range(len(values))
            if number != row[place] and (reach is None or abs(number - row[place]) <= reach)
        ]
        rows = _rows(near) if near else _rows([row])[:0]
        return self.named(rows[self.solver.allows(rows)])

    def nearest(self, tunables: Mapping[str, TunableValue]) -> Tunables | None:
        """The valid point with the fewest other values, of those the one with the nearest values.

        Of several, the one that keeps the tunables that are declared first. None if none is valid, or if
        TRIED points are not.
        """
        row = self._row(tunables)
        if row is None:
            return None
        others = [
            [place for place in range(len(values)) if place != at]
            for values, at in zip(self.values.values(), row, strict=True)
        ]
        tried = 0
        for changes in range(len(row) + 1):
            found: list[tuple[int, Tunables]] = []
            for axes in itertools.combinations(reversed(range(len(row))), changes):
                changed = [
                    _changed(row, axes, places) for places in itertools.product(*(others[n] for n in axes))
                ]
                rows = _rows(changed) if changed else _rows([row])[:0]
                valid = rows[self.solver.allows(rows)]
                distances = abs(valid - _rows([row])).sum(axis=1).tolist()
                found.extend(zip(distances, self.named(valid), strict=True))
                tried += len(rows)
                if tried > TRIED:
                    return None
            if found:
                return min(found, key=lambda each: each[0])[1]
        return None

    def pruned(self) -> tuple[Pruned, ...]:
        """How many of the remaining points each rule excludes."""
        left = self.solver.counts_by_rule()
        counts: list[int | None] = [None] * len(self.constraints)
        if left is not None:
            counts = [before - after for before, after in itertools.pairwise(left)]
        return tuple(
            Pruned(implementation=self.implementation, rule=rule.rule, reason=rule.reason, count=count)
            for rule, count in zip(self.constraints, counts, strict=True)
            if count != 0
        )

    def named(self, rows: "Rows") -> list[Tunables]:
        """The points of rows."""
        columns = [
            [values[number] for number in column]
            for values, column in zip(self.values.values(), rows.T.tolist(), strict=True)
        ]
        names = tuple(self.values)
        if not names:
            return [{} for _ in rows]
        return [dict(zip(names, point, strict=True)) for point in zip(*columns, strict=True)]

    def _row(self, tunables: Mapping[str, TunableValue]) -> list[int] | None:
        if tunables.keys() != self.values.keys():
            return None
        found = [self._places[name].get(_identity(tunables[name])) for name in self.values]
        return None if None in found else found  # type: ignore[return-value]

    @functools.cached_property
    def _places(self) -> dict[str, dict[tuple[bool, TunableValue], int]]:
        return {
            name: {_identity(value): number for number, value in enumerate(values)}
            for name, values in self.values.items()
        }


class Space(Record, frozen=True, kw_only=True):
    """The space of a task: one subspace per implementation."""

    subspaces: tuple[Subspace, ...]

    @property
    def size(self) -> int:
        """Number of points before the constraints."""
        return sum(each.size for each in self.subspaces)

    @property
    def count(self) -> int:
        """Number of valid points."""
        return sum(each.count for each in self.subspaces)

    def points(self) -> list[Point]:
        """All valid points, implementation by implementation."""
        return [(each.implementation, point) for each in self.subspaces for point in each.points()]

    def defaults(self) -> list[Point]:
        """The default of each implementation; it need not be valid on this problem."""
        return [(each.implementation, each.default) for each in self.subspaces]

    def contains(self, point: Point) -> bool:
        """Whether a point is valid in one of the subspaces."""
        return any(each.contains(point[1]) for each in self.subspaces if each.implementation == point[0])

    def neighbors(self, point: Point, reach: int | None = None) -> list[Point]:
        """The valid points of the same implementation that differ in one tunable; see Subspace."""
        return [
            (each.implementation, near)
            for each in self.subspaces
            if each.implementation == point[0]
            for near in each.neighbors(point[1], reach)
        ]

    def sample(self, generator: random.Random, count: int) -> list[Point]:
        """Distinct valid points, uniformly at random; all of them if there are fewer.

        Numbers are drawn and turned into points, so nothing is enumerated. Where a rule is wide, points that
        break it are drawn too and dropped, which leaves all valid ones equally likely.

        Raises
        ------
        FormulaError
            A wide rule is broken by nearly every point that is drawn.
        """
        return _draw(self, generator, count)


def space_of(spec: GenerateSpec) -> Space:
    """The space that a GenerateSpec describes."""
    constants = constants_of(spec.problem, spec.limits)
    return Space(
        subspaces=tuple(
            subspace(name, implementation, spec.optimization, constants)
            for name, implementation in spec.implementations.items()
        )
    )


def recorded_space(recorded: RecordedSpace) -> Subspace:
    """The space of another tuner's file; the implementation has the name of its kernel."""
    return Subspace(
        implementation=recorded.kernel or recorded.source,
        values=recorded.tunables,
        default={name: recorded.defaults.get(name, values[0]) for name, values in recorded.tunables.items()},
        constraints=recorded.constraints,
        constants=recorded.constants,
    )


def constants_of(problem: Problem, limits: Mapping[str, int]) -> Tunables:
    """Names for a kernel's formulas in addition to its tunables."""
    itemsize = ELEMENT_BYTES[problem.element]
    return {**limits, **problem.attributes, **problem.dimensions, "itemsize": itemsize}


def subspace(
    name: str, implementation: Implementation, optimization: Optimization, constants: Tunables
) -> Subspace:
    """One implementation's tunables, narrowed."""
    values = {
        tunable: narrow(tunable, declared, optimization)
        for tunable, declared in implementation.tunables.items()
    }
    return Subspace(
        implementation=name,
        values=values,
        default={
            tunable: declared.default if declared.default in values[tunable] else values[tunable][0]
            for tunable, declared in implementation.tunables.items()
        },
        constraints=implementation.constraints,
        constants=constants,
        techniques={
            tunable: (declared.technique, declared.off)
            for tunable, declared in implementation.tunables.items()
            if declared.technique is not None and declared.off is not None
        },
    )


def narrow(name: str, tunable: Tunable, optimization: Optimization) -> tuple[TunableValue, ...]:
    """The values of a tunable that an optimization leaves.

    What is fixed wins; then a technique that is off; then what is free; the rest keeps its default. A
    technique without an `off` value cannot be switched off: its tunables keep their default.
    """
    value = set_value(name, tunable, optimization)
    if value is not None:
        return (value,)
    free = optimization.free == "all" or name in optimization.free
    return tunable.values if free and _takes_part(tunable, optimization) else (tunable.default,)


def set_value(name: str, tunable: Tunable, optimization: Optimization) -> TunableValue | None:
    """The value that an optimization sets: a fixed one, or `off`; None if it sets none."""
    if name in optimization.fixed:
        return optimization.fixed[name]
    return None if _takes_part(tunable, optimization) else tunable.off


def _takes_part(tunable: Tunable, optimization: Optimization) -> bool:
    techniques = optimization.techniques
    return tunable.technique is None or techniques == "all" or tunable.technique in techniques


def _rows(rows: Sequence[Sequence[int]]) -> "Rows":
    import numpy as np

    return np.array(rows, dtype=np.int64).reshape(len(rows), -1)


def _changed(row: Sequence[int], axes: Sequence[int], places: Sequence[int]) -> list[int]:
    changed = list(row)
    for axis, place in zip(axes, places, strict=True):
        changed[axis] = place
    return changed


def _identity(value: TunableValue) -> tuple[bool, TunableValue]:
    return isinstance(value, bool), value  # 1 and true are two values of a tunable


def _draw(space: Space, generator: random.Random, count: int) -> list[Point]:
    """Distinct valid points, `count` of them or all.

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
    """All numbers below a total in random order, in batches."""
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
    """The valid solutions among these numbers, in their order."""
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
