"""Count the solutions of constraints. In: sizes of variables, tables of what is allowed. Out: any of them.

Variables are eliminated one after the other (bucket elimination: Dechter, Artificial Intelligence 113, 1999):
the tables that name a variable are multiplied and summed over it, which leaves a table over its neighbours:
in how many ways it and all before it can be set. The last sum is the number of solutions. Backwards,
these tables number the solutions from 0, and the k-th is found without visiting any other: to draw solutions
evenly is to draw numbers, to list them is to ask for every number. No solution is ever searched for.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.search.spaces.vectorized_rules import Truth

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
        """The table with axes for more variables, which it repeats itself along."""
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
