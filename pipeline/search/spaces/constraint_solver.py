"""Solve the constraints of a space: how many points are valid, and any of them by its number.

Each rule becomes a table over the values of the tunables that it names. Variables are eliminated one after
the other (bucket elimination: Dechter, Artificial Intelligence 113, 1999): the tables that name a variable
are multiplied and summed over it, which leaves a table over its neighbors: in how many ways it and all before
it can be set. The last sum is the number of solutions. Backwards, these tables number the solutions from 0,
and the k-th is found without visiting any other: to sample uniformly is to draw numbers. A rule over so many
tunables that its table would be too large is wide: it is checked on each point instead.
"""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import FormulaError, hint
from pipeline.records.formula import names_in
from pipeline.search.spaces.vectorized_rules import Column, Truth, column, holds

BLOCK = 2**16  # points that are looked at together

Values = Mapping[str, tuple[TunableValue, ...]]


CELLS = 2**23  # of the largest table: 64 MiB


ALL: Any = slice(None)


EXACT_COUNT = 2**62  # beyond it, counts are Python's whole numbers


Counts = npt.NDArray[Any]
"""int64, or objects where that could overflow."""


Rows = npt.NDArray[np.int64]
"""Solutions x variables: which value each variable has."""


class Factor:
    """A table over some variables; its axes are in their order."""

    def __init__(self, scope: tuple[int, ...], table: Truth | Counts) -> None:
        self.scope = scope
        self.table = table

    def over(self, scope: Sequence[int]) -> Truth | Counts:
        """The table with axes of length 1 for more variables, for broadcasting."""
        shape = dict(zip(self.scope, self.table.shape, strict=True))
        return self.table.reshape([shape.get(variable, 1) for variable in scope])


class TooWide(Exception):
    """Eliminating any variable would take a table beyond CELLS."""


class _Bucket:
    """One variable's table, and the messages of the variables eliminated before it that went into it."""

    def __init__(self, variable: int, scope: tuple[int, ...], weights: Counts) -> None:
        self.variable = variable
        self.rest = tuple(each for each in scope if each != variable)
        self.weights = np.moveaxis(weights, scope.index(variable), 0)
        self.children: list[tuple[int, Factor]] = []


class Solutions:
    """The solutions of some factors, numbered from 0."""

    def __init__(self, sizes: Sequence[int], factors: Sequence[Factor]) -> None:
        """Raises TooWide."""
        self._sizes = tuple(sizes)
        self._kind = np.dtype(np.int64 if math.prod(sizes) < EXACT_COUNT else np.object_)
        self._buckets: list[_Bucket] = []
        self._roots: list[tuple[int, int]] = []
        open_factors = [(factor, -1) for factor in factors if factor.scope]
        waiting = set(range(len(sizes)))
        while waiting:
            variable = min(waiting, key=lambda each: (self._cells(each, open_factors), each))
            open_factors = self._eliminate(variable, open_factors)
            waiting.remove(variable)
        fixed = all(bool(factor.table) for factor in factors if not factor.scope)
        self.count = math.prod(count for _, count in self._roots) if fixed else 0

    def rows(self, numbers: Sequence[int] | Rows) -> Rows:
        """The solutions of these numbers, each in [0, count)."""
        rest: Counts = np.array(numbers, dtype=self._kind)
        ranks: dict[int, Counts] = {}
        for variable, count in self._roots:
            ranks[variable] = rest % count
            rest = rest // count
        found = np.zeros((len(numbers), len(self._sizes)), dtype=np.int64)
        for bucket in reversed(self._buckets):
            weights = bucket.weights[(ALL, *(found[:, each] for each in bucket.rest))]
            if not bucket.rest:
                weights = weights.reshape(-1, 1)
            _pick(bucket, weights, ranks, found)
        return found

    def _cells(self, variable: int, factors: Sequence[tuple[Factor, int]]) -> int:
        return math.prod(self._sizes[each] for each in _union(variable, factors))

    def _eliminate(self, variable: int, factors: list[tuple[Factor, int]]) -> list[tuple[Factor, int]]:
        scope = _union(variable, factors)
        if len(scope) > 1 and math.prod(self._sizes[each] for each in scope) > CELLS:
            raise TooWide
        weights: Counts = np.ones([self._sizes[each] for each in scope], dtype=self._kind)
        bucket = _Bucket(variable, scope, weights)
        left = []
        for factor, sender in factors:
            if variable not in factor.scope:
                left.append((factor, sender))
                continue
            weights *= factor.over(scope)
            if sender >= 0:
                bucket.children.append((sender, factor))
        self._buckets.append(bucket)
        message = bucket.weights.sum(axis=0)
        if bucket.rest:
            return [*left, (Factor(bucket.rest, message), variable)]
        self._roots.append((variable, int(message)))
        return left


class _Table(NamedTuple):
    rule: str
    factor: Factor


class Solver:
    """The valid points of a space, each as a row: the number of its value for each tunable."""

    def __init__(self, values: Values, rules: Sequence[str], constants: Mapping[str, TunableValue]) -> None:
        """Raises FormulaError: a rule has an unknown name, or cannot be evaluated."""
        self._numbers = {name: number for number, name in enumerate(values)}
        self._sizes = [len(each) for each in values.values()]
        self._columns = [column(each) for each in values.values()]
        self._constants = {name: column([value]) for name, value in constants.items()}
        # A tunable with one value is no axis: rules that name dozens of them have small tables too.
        self._constants |= {name: column(each) for name, each in values.items() if len(each) == 1}
        self._tables: list[_Table] = []
        self._wide: list[str] = []
        for rule in rules:
            _check_names(rule, {*values, *constants})
            self._take(rule)
        self.solutions = self._solved()

    @functools.cached_property
    def count(self) -> int:
        """Number of valid points; visits them only if a rule is wide."""
        return sum(len(rows) for rows in self.blocks()) if self._wide else self.solutions.count

    def counts_by_rule(self) -> list[int] | None:
        """Number of points before the first rule, after it, after the second, …; None if a rule is wide."""
        if self._wide:
            return None
        factors = [table.factor for table in self._tables]
        try:
            return [Solutions(self._sizes, factors[:number]).count for number in range(len(factors) + 1)]
        except TooWide:
            return None

    @property
    def wide(self) -> tuple[str, ...]:
        """The rules that are not part of `solutions`."""
        return tuple(self._wide)

    def blocks(self) -> Iterator[Rows]:
        """All valid points, in an unspecified order."""
        for start in range(0, self.solutions.count, BLOCK):
            rows = self.solutions.rows(range(start, min(start + BLOCK, self.solutions.count)))
            yield rows[self.keeps_wide(rows)] if self._wide else rows

    def allows(self, rows: Rows) -> Truth:
        """Which of these rows are valid points."""
        keep = np.ones(len(rows), dtype=np.bool_)
        for _, factor in self._tables:
            keep &= factor.table[tuple(rows[:, number] for number in factor.scope)].astype(np.bool_)
        places = np.flatnonzero(keep)
        keep[places] = self.keeps_wide(rows[places])
        return keep

    def keeps_wide(self, rows: Rows) -> Truth:
        """Which of these solutions satisfy the wide rules too."""
        places = np.arange(len(rows))
        for rule in self._wide:
            left = rows[places]
            named = {name: self._columns[number][left[:, number]] for name, number in self._named(rule)}
            places = places[np.broadcast_to(holds(rule, {**self._constants, **named}), len(left))]
        keep = np.zeros(len(rows), dtype=np.bool_)
        keep[places] = True
        return keep

    def _solved(self) -> Solutions:
        while True:
            try:
                return Solutions(self._sizes, [table.factor for table in self._tables])
            except TooWide:
                widest = max(self._tables, key=lambda table: table.factor.table.size)
                self._tables.remove(widest)
                self._wide.append(widest.rule)

    def _named(self, rule: str) -> list[tuple[str, int]]:
        """The tunables with several values that a rule names, in their order."""
        return [
            (name, number)
            for name, number in self._numbers.items()
            if self._sizes[number] != 1 and name in names_in(rule)
        ]

    def _take(self, rule: str) -> None:
        named = self._named(rule)
        scope = tuple(number for _, number in named)
        shape = [self._sizes[number] for number in scope]
        if len(scope) > 1 and math.prod(shape) > CELLS:
            self._wide.append(rule)
            return
        axes = {
            name: self._columns[number].reshape([-1 if number == other else 1 for other in scope])
            for name, number in named
        }
        try:
            truth = holds(rule, {**self._constants, **axes})
        except FormulaError:
            truth = self._where_others_hold(rule, scope, axes)
        table = np.broadcast_to(truth, shape) if scope else truth.reshape(())
        self._tables.append(_Table(rule, Factor(scope, table)))

    def _where_others_hold(self, rule: str, scope: tuple[int, ...], axes: Mapping[str, Column]) -> Truth:
        """Evaluate a rule that relies on earlier ones: `x > 0`, then `64 % x == 0`."""
        shape = [self._sizes[number] for number in scope]
        asked = np.ones(shape, dtype=np.bool_)
        for _, factor in self._tables:
            if set(factor.scope) <= set(scope):
                asked &= factor.over(scope).astype(np.bool_)
        rows = {name: np.broadcast_to(axis, shape)[asked] for name, axis in axes.items()}
        asked[asked] = holds(rule, {**self._constants, **rows})
        return asked


def _check_names(rule: str, known: set[str]) -> None:
    unknown = sorted(names_in(rule) - known)
    if unknown:
        raise FormulaError(f"`{rule}`: unknown name '{unknown[0]}'{hint(unknown[0], sorted(known))}")


def _union(variable: int, factors: Sequence[tuple[Factor, int]]) -> tuple[int, ...]:
    scopes = [factor.scope for factor, _ in factors if variable in factor.scope]
    return tuple(sorted({variable}.union(*scopes)))


def _pick(bucket: _Bucket, weights: Counts, ranks: dict[int, Counts], found: Rows) -> None:
    """The variable's value in each solution, and the ranks that remain for the variables before it."""
    rank = ranks.pop(bucket.variable)
    ends = weights.cumsum(axis=0)
    chosen = (ends <= rank).sum(axis=0).astype(np.int64)
    found[:, bucket.variable] = chosen
    place = np.arange(len(chosen)) if weights.shape[1] > 1 else np.zeros(len(chosen), dtype=np.int64)
    rest = rank - (ends[chosen, place] - weights[chosen, place])
    for sender, message in bucket.children:
        ways = message.table[tuple(found[:, each] for each in message.scope)]
        ranks[sender] = rest % ways
        rest = rest // ways
