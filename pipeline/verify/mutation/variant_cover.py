"""Chooses the variants that mutants are tried on: few, covering as much of the source as they can.

In: the valid variants of each task. Out: pairs of task and variant; the first is the first task's default.
"""

import itertools
from collections.abc import Mapping, Sequence

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.record import Record
from pipeline.records.results.variant import Variant

CONSIDERED = 500  # variants of a task, evenly spread: large spaces repeat themselves


class TaskVariant(Record, frozen=True, kw_only=True):
    """A variant of a task."""

    task: int
    """Number of the task."""
    variant: Variant


class VariantCover(Record, frozen=True, kw_only=True):
    """In the order in which they are tried."""

    all: tuple[TaskVariant, ...]
    breadth: int
    """So many of them take every value of every tunable: a mutant that changes none of these is given up."""


_Value = tuple[str, TunableValue]


def covering_variants(
    tasks: Sequence[Sequence[Variant]], defaults: Mapping[str, TunableValue], at_most: int
) -> VariantCover:
    """Greedily: next comes what adds most values of tunables (and tasks), then most pairs of them."""
    left = [
        TaskVariant(task=number, variant=variant)
        for number, each in enumerate(tasks)
        for variant in _spread(each)
    ]
    left.sort(key=lambda task_variant: (task_variant.task, _distance(task_variant.variant, defaults)))
    values = [_values(task_variant) for task_variant in left]
    pairs = [set(itertools.combinations(each, 2)) for each in values]
    seen: tuple[set[_Value], set[tuple[_Value, _Value]]] = (set(), set())
    order: list[int] = []
    breadth = 0
    for _ in range(min(at_most, len(left))):
        gains = [(len(set(values[n]) - seen[0]), len(pairs[n] - seen[1])) for n in range(len(left))]
        best = max(range(len(left)), key=gains.__getitem__) if order else 0
        if not any(gains[best]):
            break
        breadth += gains[best][0] > 0
        seen[0].update(values[best])
        seen[1].update(pairs[best])
        order.append(best)
    return VariantCover(all=tuple(left[number] for number in order), breadth=breadth)


def _spread(variants: Sequence[Variant]) -> Sequence[Variant]:
    step = -(-len(variants) // CONSIDERED)
    return variants[:: max(step, 1)]


def _values(task_variant: TaskVariant) -> tuple[_Value, ...]:
    return ("", task_variant.task), *sorted(task_variant.variant.tunables.items())


def _distance(variant: Variant, defaults: Mapping[str, TunableValue]) -> int:
    """How many tunables do not have their default."""
    return sum(defaults.get(name, value) != value for name, value in variant.tunables.items())
