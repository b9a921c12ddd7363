"""The space of a task: tunables narrowed by the optimization, constraints solved. In: records. Out: points.

Constraints are solved with python-constraint2, not filtered by trial: a rule over two tunables of a space of
eight cuts whole subtrees. A rule is evaluated once per combination of the tunables that it names.
"""

import functools
import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import constraint

from pipeline.errors import FormulaError
from pipeline.records.kernel import Constraint, Implementation, Tunable, TunableValue
from pipeline.records.optimization import Optimization
from pipeline.records.problem import Problem
from pipeline.records.record import Record
from pipeline.records.specs import GenerateSpec
from pipeline.records.variant import Pruned
from pipeline.search.formula import ELEMENT_BYTES, evaluate, names_in

ENUMERABLE = 200_000  # points; above it, how many points each rule excludes is not counted

Tunables = dict[str, TunableValue]
Point = tuple[str, Tunables]
"""Implementation and the values of its tunables."""


class Subspace(Record, frozen=True, kw_only=True):
    """What one implementation contributes."""

    implementation: str
    values: dict[str, tuple[TunableValue, ...]]
    """Tunable -> the values that it may take here; one where it does not vary."""
    default: Tunables
    constraints: tuple[Constraint, ...]
    constants: Tunables
    """What the rules may name beside the tunables: dimensions, limits, attributes, `itemsize`."""
    techniques: dict[str, tuple[str, TunableValue]] = {}
    """Tunable -> the technique that it expresses, and the value that switches it off."""

    @property
    def size(self) -> int:
        """Number of points before the constraints."""
        return math.prod(len(values) for values in self.values.values())

    def points(self) -> list[Tunables]:
        """All valid points, in the order of the product of the declared values."""
        return sorted(_solve(self, self.constraints), key=self._position)

    def has_point(self) -> bool:
        """Whether any point is valid; much cheaper than all of them."""
        return next(_solve(self, self.constraints), None) is not None

    def contains(self, point: Tunables) -> bool:
        """Whether the values are declared and the rules hold."""
        if any(point[name] not in values for name, values in self.values.items()):
            return False
        return all(evaluate(rule.rule, {**self.constants, **point}) for rule in self.constraints)

    def sample(self, generator: random.Random, count: int) -> list[Tunables]:
        """So many distinct valid points, or fewer."""
        points = self.points()
        return generator.sample(points, min(count, len(points)))

    def pruned(self) -> tuple[Pruned, ...]:
        """What each rule excludes of that which the rules before it leave."""
        counts = self._counts()
        return tuple(
            Pruned(implementation=self.implementation, rule=rule.rule, reason=rule.reason, count=count)
            for rule, count in zip(self.constraints, counts, strict=True)
            if count != 0
        )

    def _counts(self) -> list[int | None]:
        if self.size > ENUMERABLE:
            return [None] * len(self.constraints)
        left = [self.size]
        for number in range(len(self.constraints)):
            left.append(sum(1 for _ in _solve(self, self.constraints[: number + 1])))
        return [before - after for before, after in itertools.pairwise(left)]

    def _position(self, point: Tunables) -> tuple[int, ...]:
        return tuple(values.index(point[name]) for name, values in self.values.items())


class Space(Record, frozen=True, kw_only=True):
    """All implementations that take part."""

    subspaces: tuple[Subspace, ...]

    def points(self) -> list[Point]:
        """All valid points, implementation by implementation."""
        return [(each.implementation, point) for each in self.subspaces for point in each.points()]

    def defaults(self) -> list[Point]:
        """The default of each implementation; it need not be valid on this problem."""
        return [(each.implementation, each.default) for each in self.subspaces]


def space_of(spec: GenerateSpec) -> Space:
    """The space that a GenerateSpec describes."""
    constants = constants_of(spec.problem, spec.limits)
    return Space(
        subspaces=tuple(
            subspace(name, implementation, spec.optimization, constants)
            for name, implementation in spec.implementations.items()
        )
    )


def constants_of(problem: Problem, limits: Mapping[str, int]) -> Tunables:
    """What the formulas of a kernel may name beside its tunables."""
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
    """The values that an optimization leaves to a tunable.

    What is fixed wins; then a technique that is off; then what is free; the rest keeps its default. A
    technique without an `off` value cannot be switched off: its tunables keep their default.
    """
    if name in optimization.fixed:
        return (optimization.fixed[name],)
    techniques = optimization.techniques
    if tunable.technique is not None and techniques != "all" and tunable.technique not in techniques:
        return (tunable.default if tunable.off is None else tunable.off,)
    if optimization.free == "all" or name in optimization.free:
        return tunable.values
    return (tunable.default,)


def _solve(space: Subspace, rules: Sequence[Constraint]) -> Iterator[Tunables]:
    """Valid points in the solver's order; rules over constants alone are decided before it starts."""
    problem = constraint.Problem()
    for name, values in space.values.items():
        problem.addVariable(name, list(values))
    for rule in rules:
        _check_names(rule.rule, space)
        variables = sorted(names_in(rule.rule) & space.values.keys())
        holds = _memoised(rule.rule, variables, space.constants)
        if variables:
            problem.addConstraint(constraint.FunctionConstraint(holds), variables)
        elif not holds():
            return
    if space.values:
        yield from problem.getSolutionIter()
    else:
        yield {}


def _memoised(rule: str, variables: list[str], constants: Tunables) -> Any:
    @functools.cache
    def holds(*values: TunableValue) -> bool:
        return bool(evaluate(rule, {**constants, **dict(zip(variables, values, strict=True))}))

    return holds


def _check_names(rule: str, space: Subspace) -> None:
    known = space.values.keys() | space.constants.keys()
    unknown = sorted(names_in(rule) - known)
    if unknown:
        raise FormulaError(f"`{rule}`: unknown name '{unknown[0]}' (known: {', '.join(sorted(known))})")
