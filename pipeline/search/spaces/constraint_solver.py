"""Solve the rules of a space. In: values, rules, constants. Out: how many points are valid, and any of them.

Each rule becomes a table over the values of the tunables that it names, from which `counting` numbers the
valid points. A rule over so many tunables that its table would be too large is wide: it is not part of that
numbering, and is checked on each point that comes out of it.
"""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.errors import FormulaError
from pipeline.records.formula import names_in
from pipeline.search.spaces import solution_counting
from pipeline.search.spaces.solution_counting import Factor, Rows, Solutions, TooWide
from pipeline.search.spaces.vectorized_rules import Column, Truth, column, holds

BLOCK = 2**16  # points that are looked at together

Values = Mapping[str, tuple[TunableValue, ...]]


class _Table(NamedTuple):
    rule: str
    factor: Factor


class Solver:
    """The valid points of a space, each as a row: the number of its value for each tunable."""

    def __init__(self, values: Values, rules: Sequence[str], constants: Mapping[str, TunableValue]) -> None:
        """Raises FormulaError: a rule names what is not there, or cannot be evaluated."""
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
        """Number of valid points; visits them only where a rule is wide."""
        return sum(len(rows) for rows in self.blocks()) if self._wide else self.solutions.count

    def counts_by_rule(self) -> list[int] | None:
        """What is left before the first rule, after it, after the second, …; None where a rule is wide."""
        if self._wide:
            return None
        factors = [table.factor for table in self._tables]
        try:
            return [Solutions(self._sizes, factors[:number]).count for number in range(len(factors) + 1)]
        except TooWide:
            return None

    @property
    def wide(self) -> tuple[str, ...]:
        """The rules that `solutions` knows nothing of."""
        return tuple(self._wide)

    def blocks(self) -> Iterator[Rows]:
        """All valid points, in an order without meaning."""
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
        """Which of these solutions keep the wide rules too."""
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
        if len(scope) > 1 and math.prod(shape) > solution_counting.CELLS:
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
        """A rule may rely on those before it: `x > 0`, then `64 % x == 0`."""
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
        raise FormulaError(f"`{rule}`: unknown name '{unknown[0]}' (known: {', '.join(sorted(known))})")
