"""The shapes that a variant is tried on: the workload's, scaled down to the budget, and edge cases.

In: a problem on its workload's dimensions and a number of elements. Out: dimensions. No derived dimension
exceeds the workload's, so a constraint such as `BLOCK >= cols` that holds there holds on the edges as
well. Each edge is one function and one line in `EDGES`.
"""

import math
from collections.abc import Callable

from pipeline.records.planning.problem import Problem
from pipeline.records.record import Record

Dimensions = dict[str, int]

EDGE_FRACTION = 4  # edge shapes have at most this part of the elements of the workload's
_SMALLEST_BATCH = 16  # the first way of scaling leaves the outer dimensions at least this long


class Shape(Record, frozen=True, kw_only=True):
    """Dimensions, and whether tensors whose layout allows it get padded rows."""

    edge: str
    """`workload`, or the name of the edge."""
    dimensions: Dimensions
    padded: bool = False


class ShapeBudget(Record, frozen=True, kw_only=True):
    """What shapes may cost."""

    elements: int
    """Of the largest tensor; edges get a part of it."""
    rows: int | None = None
    """Rows of a row-wise kernel, each of which is a program that takes an interpreter milliseconds."""
    edges: int
    """How many derived shapes."""


def plan(problem: Problem, budget: ShapeBudget, allowed: Callable[[Dimensions], bool]) -> tuple[Shape, ...]:
    """The workload's shape, scaled, then edges, for a variant whose constraints allow these dimensions.

    The workload's own dimensions are allowed by construction, so there is always a shape; edges that the
    constraints exclude also with one dimension as in the workload are outside of what the variant promises.
    """
    ways = scalings(problem, budget)
    base = next((way for way in ways if allowed(way)), ways[-1])
    found = edges(problem, base, budget.edges, max(budget.elements // EDGE_FRACTION, 1))
    kept = {_key(shape): shape for each in found if (shape := _fitting(each, base, allowed))}
    kept.pop(_key(Shape(edge="workload", dimensions=base)), None)
    return (Shape(edge="workload", dimensions=base), *kept.values())


def _fitting(shape: Shape, base: Dimensions, allowed: Callable[[Dimensions], bool]) -> Shape | None:
    """The edge, or where a constraint forbids one of its dimensions with that one as in the workload."""
    ways = [shape.dimensions, *(shape.dimensions | {name: base[name]} for name in shape.dimensions)]
    fitting = next((dimensions for dimensions in ways if allowed(dimensions)), None)
    return None if fitting is None else Shape(edge=shape.edge, dimensions=fitting, padded=shape.padded)


def _key(shape: Shape) -> tuple[object, ...]:
    return (*sorted(shape.dimensions.items()), shape.padded)


def largest_tensor(problem: Problem, dimensions: Dimensions) -> int:
    """Elements of the largest tensor on these dimensions."""
    sized = problem.with_dimensions(dimensions)
    return max(math.prod(sized.shape(name)) for name in problem.tensors)


def scalings(problem: Problem, budget: ShapeBudget) -> tuple[Dimensions, ...]:
    """Ways to shrink the workload to a size, best first; the last one is the workload itself.

    A variant takes the first that its constraints allow: a limit that names one dimension (a block that must
    hold a whole row) is kept by the way that shrinks the others.
    """
    start = problem.dimensions | _fewer_rows(problem, budget.rows)
    balanced = shrink(problem, start, budget.elements)
    outer_first = dict(start)
    for name in tuple(outer_first):
        while largest_tensor(problem, outer_first) > budget.elements and outer_first[name] > _SMALLEST_BATCH:
            outer_first[name] = max(_SMALLEST_BATCH, outer_first[name] // 2)
    alone = [_shrink_one(problem, start, name, budget.elements) for name in start]
    ways = [balanced, outer_first, *alone, dict(problem.dimensions)]
    return tuple(way for number, way in enumerate(ways) if way not in ways[:number])


def _shrink_one(problem: Problem, dimensions: Dimensions, name: str, elements_at_most: int) -> Dimensions:
    """Halve one dimension until the largest tensor fits, or nothing is left of it."""
    smaller = dict(dimensions)
    while largest_tensor(problem, smaller) > elements_at_most and smaller[name] > 1:
        smaller[name] //= 2
    return smaller


def _fewer_rows(problem: Problem, rows: int | None) -> Dimensions:
    """The outermost dimension of a row-wise kernel (all its matrices have one shape), cut."""
    matrices = {tensor.shape for tensor in problem.tensors.values() if len(tensor.shape) > 1}
    if rows is None or len(matrices) != 1:
        return {}
    outer = next(iter(matrices))[0]
    return {outer: min(problem.dimensions[outer], rows)}


def shrink(problem: Problem, dimensions: Dimensions, elements_at_most: int) -> Dimensions:
    """Halve the largest dimension until the largest tensor fits."""
    smaller = dict(dimensions)
    while largest_tensor(problem, smaller) > elements_at_most and max(smaller.values()) > 1:
        name = max(smaller, key=lambda key: smaller[key])
        smaller[name] //= 2
    return smaller


def edges(problem: Problem, base: Dimensions, count: int, elements_at_most: int) -> tuple[Shape, ...]:
    """The first `count` edges around a scaled workload, without repetitions."""
    found: list[Shape] = []
    for name, derive in EDGES.items():
        shape = derive(problem, base, elements_at_most)
        if shape is None or any(shape.dimensions == s.dimensions and shape.padded == s.padded for s in found):
            continue
        found.append(Shape(edge=name, dimensions=shape.dimensions, padded=shape.padded))
    return tuple(found[:count])


class _Derived(Record, frozen=True):
    dimensions: Dimensions
    padded: bool


_Edge = Callable[[Problem, Dimensions, int], _Derived | None]


def _strided(problem: Problem, base: Dimensions, elements: int) -> _Derived | None:
    """The workload's shape with padded rows."""
    if all(tensor.layout == "contiguous" for tensor in problem.tensors.values()):
        return None
    return _Derived(shrink(problem, base, elements), True)


def _above(problem: Problem, base: Dimensions, elements: int) -> _Derived:
    """One more than a multiple of every power of two up to a half of the dimension."""
    powers = {name: _power_of_two_below(size) for name, size in base.items()}
    powers = shrink(problem, powers, elements)
    return _Derived({name: min(power + 1, base[name]) for name, power in powers.items()}, True)


def _below(problem: Problem, base: Dimensions, elements: int) -> _Derived:
    """One less than the workload, mostly one less than a multiple of a block."""
    smaller = shrink(problem, base, elements)
    return _Derived({name: max(size - 1, 1) for name, size in smaller.items()}, False)


def _ones(_problem: Problem, base: Dimensions, _elements: int) -> _Derived:
    """Every dimension is 1."""
    return _Derived(dict.fromkeys(base, 1), False)


def _prime(problem: Problem, base: Dimensions, elements: int) -> _Derived:
    """Every dimension is another prime: no block, vector or unrolling divides it, no two axes are alike."""
    smaller = shrink(problem, base, max(elements // 4, 1))
    primes: Dimensions = {}
    for name, size in smaller.items():
        prime = _prime_at_most(size)
        while prime in primes.values() and prime > 1:
            prime = _prime_at_most(prime - 1)
        primes[name] = prime
    return _Derived(primes, True)


def _empty(problem: Problem, base: Dimensions, elements: int) -> _Derived | None:
    """The outermost dimension of the outputs is 0: nothing to do is legal, as in PyTorch.

    If indices count along it, there is no value for them.
    """
    outer = _outermost(problem)
    if outer is None:
        return None
    dimensions = _prime(problem, base, elements).dimensions | {outer: 0}
    sized = problem.with_dimensions(dimensions)
    inputs = (name for name in sized.names("input") if sized.tensors[name].below == outer)
    if any(math.prod(sized.shape(name)) for name in inputs):
        return None
    return _Derived(dimensions, False)


def _one_row(problem: Problem, base: Dimensions, elements: int) -> _Derived | None:
    """The outermost dimension of the outputs is 1."""
    outer = _outermost(problem)
    if outer is None:
        return None
    return _Derived(shrink(problem, base | {outer: 1}, elements), True)


def _one_column(problem: Problem, base: Dimensions, elements: int) -> _Derived | None:
    """The innermost dimension of the outputs is 1."""
    inner = _output_axes(problem)
    if not inner:
        return None
    return _Derived(shrink(problem, base | {inner[-1]: 1}, elements), True)


def _narrow(problem: Problem, base: Dimensions, elements: int) -> _Derived | None:
    """All dimensions but the outermost of the outputs are 3: bounds are tightest for few terms."""
    outer = _outermost(problem)
    small = {name: size if name == outer else min(size, 3) for name, size in base.items()}
    return _Derived(shrink(problem, small, elements), True)


def _few_rows(problem: Problem, base: Dimensions, elements: int) -> _Derived | None:
    """The outermost dimension of the outputs is 3: kernels for few rows meet more than their first one."""
    outer = _outermost(problem)
    if outer is None or base[outer] < 2:
        return None
    return _Derived(shrink(problem, base | {outer: min(base[outer], 3)}, elements), True)


EDGES: dict[str, _Edge] = {
    "strided": _strided,
    "above": _above,
    "ones": _ones,
    "prime": _prime,
    "empty": _empty,
    "below": _below,
    "one_row": _one_row,
    "one_column": _one_column,
    "narrow": _narrow,
    "few_rows": _few_rows,
}


def _outermost(problem: Problem) -> str | None:
    return next(iter(_output_axes(problem)), None)


def _output_axes(problem: Problem) -> list[str]:
    """Dimensions among the axes of the first output that has any; other axes are formulas."""
    axes = (
        [axis for axis in problem.tensors[name].shape if axis in problem.dimensions]
        for name in problem.names("output")
    )
    return next(filter(None, axes), [])


def _power_of_two_below(size: int) -> int:
    """Largest power of two below `size`, at least 1."""
    return 1 << max((size - 1).bit_length() - 1, 0)


def _prime_at_most(size: int) -> int:
    """Largest prime up to `size`; `size` itself below 2."""
    candidate = size
    while candidate > 2 and any(candidate % divisor == 0 for divisor in range(2, math.isqrt(candidate) + 1)):
        candidate -= 1
    return candidate
