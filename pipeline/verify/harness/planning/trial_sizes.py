"""Chooses the sizes a problem is tried on: at most the declared ones, and small enough for the machine.

In: a problem. Out: the base sizes (declared, or reduced through the module-level names where that is too
much), and other sizes around them: primes and odd numbers just below, multiples of 8, 16 and 32 that are no
multiples of more, 2^k + 1, 1, each name alone and all together; halves where nothing near is accepted.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from pipeline.records.record import Record
from pipeline.sandbox.models.model_problem import ModelProblem, ProblemError, ProblemVariant
from pipeline.verify.harness.planning.extent import (
    Extent,
    extent,
    extent_of_arguments,
    input_shapes,
)

Sizes = dict[str, int]
LEADING_AT_LEAST = 32  # rows that are left before the other axes are reduced
ALIGNED = (32, 16, 8)
"""Kernels that ask for multiples of one power of two may step by a larger one."""
SMALL = 3  # of the other sizes, where one is tried at its largest
PARAMETER_AT_LEAST = 32  # a smaller number among those of the parameters is a kernel's size or a stride
OPERATORS_AT_MOST = 3000  # of one call: expected values take some seconds; a loop over steps has many
_LONG_SECONDS = 1.0  # a model that takes longer without values is not run for each choice of sizes
_FIRST_USE_SECONDS = 5.0
_FEWER = 0.9  # of the operators: what halving a size leaves of them where a loop follows it
_ROUNDS = 200  # halvings; far more than any problem needs


class SizeBudget(Record, frozen=True, kw_only=True):
    """What one call may involve."""

    elements: int
    """Of the largest tensor."""
    operations: int
    """Of matrix products and convolutions."""

    def fits(self, found: Extent) -> bool:
        """Whether a call is small enough."""
        return found.elements <= self.elements and found.operations <= self.operations


class TrialSizes:
    """The sizes of one problem."""

    def __init__(self, problem: ModelProblem, budget: SizeBudget) -> None:
        self._problem = problem
        self._budget = budget
        self._extents: dict[tuple[tuple[str, int], ...], Extent | None] = {}
        self._measure: Callable[[ProblemVariant], Extent] = extent
        seconds, declared = self._timed()
        self.loops = declared is not None and declared.operators > OPERATORS_AT_MOST
        """Whether a call on the declared sizes takes too many operators to be made often."""
        # Most of it may be what torch imports at first use.
        if not self.loops and _LONG_SECONDS < seconds < _FIRST_USE_SECONDS:
            seconds, _ = self._timed()
        if declared is None:
            raise ProblemError("its declared sizes cannot be measured")
        self.declared: Extent = declared
        self._operators_at_most = OPERATORS_AT_MOST
        if seconds > _LONG_SECONDS and not self.loops:
            self._measure = extent_of_arguments
        self._values = {size.name: size.value for size in problem.sizes}
        self._names = [name for name, value in self._values.items() if self._changes_inputs(name, value)]
        unnamed = {size.name for size in problem.sizes if not size.named}
        self.spelled_out = tuple(name for name in self._names if name in unnamed)
        """Sizes of the inputs without a name; never 1, where tensors that do not fit are broadcast."""
        self._features = [
            name for name, value in self._values.items() if self._changes_parameters(name, value)
        ]
        self._looped: set[str] = set()
        """Sizes that a loop over steps follows."""
        self.base: Sizes = self._reduced(self._with_fewer_operators() if self.loops else {})
        self.reduced = bool(self.base)

    def _timed(self) -> tuple[float, Extent | None]:
        """CPU seconds of measuring the declared sizes, and what was found."""
        started = time.thread_time()
        found = self._measured({})
        self._extents[()] = found
        return time.thread_time() - started, found

    def extent(self, sizes: Mapping[str, int]) -> Extent | None:
        """Of some sizes; None where the problem fails on them."""
        key = tuple(sorted(sizes.items()))
        if key not in self._extents:
            self._extents[key] = self._measured(sizes)
        return self._extents[key]

    def _measured(self, sizes: Mapping[str, int]) -> Extent | None:
        try:
            found = self._measure(self._problem.variant(sizes))
        except ProblemError:
            if not sizes:
                raise
            return None
        # A model that runs without values on the declared sizes, and here does not, fails on these sizes.
        asked = sizes and self.declared.ran and self._measure is extent
        return None if asked and (not found.ran or found.fits_by_chance(self.declared)) else found

    def others(self) -> Iterator[Sizes]:
        """Other sizes, the most telling first; each differs from the base, and fits the budget."""
        seen = [self.base]
        for sizes in self._proposals():
            chosen = {
                name: size for name, size in {**self.base, **sizes}.items() if size != self._values[name]
            }
            broadcast = any(chosen.get(name) == 1 for name in self.spelled_out)
            found = None if chosen in seen or broadcast else self.extent(chosen)
            seen.append(chosen)
            if found is not None and self._fits(found):
                yield chosen

    def _changes_inputs(self, name: str, value: int) -> bool:
        """Only a name that the shapes of the inputs follow is a size."""
        for other in (value + 1, value - 1, 2 * value, value // 2):
            with contextlib.suppress(ProblemError):
                if other > 0 and input_shapes(self._problem.variant({name: other})) != self.declared.inputs:
                    return True
        return False

    def _changes_parameters(self, name: str, value: int) -> bool:
        """Only the shapes of parameters follow it, as the features that a layer puts out."""
        if name in self._names or value < PARAMETER_AT_LEAST:
            return False
        found = self.extent({name: value // 2})
        return found is not None and found.parameters != self.declared.parameters

    def nearest(self, budget: SizeBudget) -> Sizes | None:
        """The declared sizes with only the first name smaller; None where that does not suffice.

        Values seldom depend on it: it is a batch, or rows. What did not run without values may take any time.
        """
        first = self._names[0] if self._names else None
        if first is None or not self.declared.ran:
            return None
        size = self._values[first]
        while size > 1:
            size //= 2
            found = self.extent({first: size})
            share = size / self._values[first]  # outputs and operations may not have been measured again
            elements = max(int(self.declared.elements * share), 0 if found is None else found.elements)
            operations = int(self.declared.operations * share)
            if found is not None and elements <= budget.elements and operations <= budget.operations:
                return {first: size}
        return None

    def _proposals(self) -> Iterator[Sizes]:
        now = {name: self.base.get(name, self._values[name]) for name in self._names}
        if not now:
            return
        below = _distinct_primes(now, near=1.0)
        yield below
        features = {name: self.base.get(name, self._values[name]) for name in self._features}
        if features:
            yield _distinct_primes({**now, **features}, near=1.0)
        yield {name: min(value, 3 + 2 * number) for number, (name, value) in enumerate(now.items())}
        for step in ALIGNED:
            yield {name: _odd_multiple(value, step) for name, value in {**now, **features}.items()}
        for name, value in now.items():
            yield {name: _below(value)}
        first = next(iter(now))
        yield {first: self._least(first, now[first])}  # a batch of one, ahead of what the limit cuts off
        for name, value in now.items():
            if self._only_halved(name, value):
                yield from ({name: value // parts} for parts in (2, 4) if value > parts)
        if self.reduced:
            yield from (self._longest(name, now) for name in now)
        for name, value in now.items():
            yield {name: _above_power_of_two(value)}
        for name, value in now.items():
            yield {name: self._least(name, value)}
        equal = dict(zip(now.values(), below.values(), strict=True))
        yield {name: min(value, equal[value]) for name, value in now.items()}
        primes = _distinct_primes(now, near=0.75)
        yield primes
        for name in now:
            yield {name: primes[name]}
        yield dict.fromkeys(now, 1)
        for name, value in now.items():
            yield {name: max(1, value // 2 - 1 + value // 2 % 2)}

    def _only_halved(self, name: str, value: int) -> bool:
        """Whether `Model` takes none of the sizes around this one, as transforms of 2^k values do."""
        around = {_below(value), *(_odd_multiple(value, step) for step in ALIGNED)} - {value}
        return all(self.extent({**self.base, name: size}) is None for size in around)

    def _least(self, name: str, value: int) -> int:
        """The smallest size that `Model` accepts: 1, or for example as many rows as it chooses from them."""
        refused, least = 0, value
        size = 1
        while refused + 1 < least:
            if self.extent({**self.base, name: size}) is None:
                refused = size
            else:
                least = size
            size = (refused + least) // 2
        return least

    def _longest(self, name: str, now: Sizes) -> Sizes:
        """One name as large as the budget lets it be, the others small."""
        if name in self._looped:
            return {name: now[name]}
        sizes = {each: min(value, SMALL) for each, value in now.items()}
        sizes[name] = _below(self._values[name])
        while sizes[name] > now[name]:
            found = self.extent({**self.base, **sizes})
            if found is not None and self._fits(found):
                return sizes
            sizes[name] //= 2
        return {name: now[name]}

    def _reduced(self, sizes: Sizes) -> Sizes:
        """Halve one name at a time until a call fits; ends where no name can be halved."""
        stuck: set[str] = set()
        for _ in range(_ROUNDS):
            found = self.extent(sizes)
            if found is not None and self._budget.fits(found):
                break
            name = self._next(sizes, stuck)
            if name is None:
                break
            alone = self._halved(sizes, [name])
            together = self._halved(sizes, self._names)
            if self.extent(alone) is not None:
                sizes = alone
            elif self.extent(together) is not None:  # sizes that must be equal, or follow each other
                sizes = together
            else:
                stuck.add(name)
        return sizes

    def _with_fewer_operators(self) -> Sizes:
        """Halve the sizes that a loop follows, one at a time or all together, until its operators are few."""
        sizes: Sizes = {}
        found = self.declared
        groups = [[name] for name in self._names] + [self._names] * (len(self._names) > 1)
        for names in groups:
            while found.operators > OPERATORS_AT_MOST:
                halved = self._halved(sizes, names)
                fewer = self.extent(halved)
                if fewer is None or fewer.operators > _FEWER * found.operators:
                    break
                self._looped |= set(names)
                sizes, found = halved, fewer
        self._operators_at_most = max(OPERATORS_AT_MOST, found.operators)
        return sizes

    def _fits(self, found: Extent) -> bool:
        return self._budget.fits(found) and found.operators <= self._operators_at_most

    def _halved(self, sizes: Sizes, names: Iterable[str]) -> Sizes:
        return {**sizes, **{name: max(sizes.get(name, self._values[name]) // 2, 1) for name in names}}

    def _next(self, sizes: Sizes, stuck: set[str]) -> str | None:
        """The first name of the inputs while it leaves many rows, then the largest of all."""
        now = {name: sizes.get(name, value) for name, value in self._values.items() if name not in stuck}
        inputs = {name: now[name] for name in self._names if name in now}
        if len(inputs) > 1:
            first = next(iter(inputs))
            if inputs[first] > LEADING_AT_LEAST:
                return first
        large = {
            name: value
            for name, value in now.items()
            if value > SMALL and (name in inputs or value >= 2 * PARAMETER_AT_LEAST)
        }
        return max(large, key=lambda name: large[name]) if large else None


def _above_power_of_two(value: int) -> int:
    """The largest 2^k + 1 that is at most `value`; 1 for 1 and 2."""
    power = 1
    while 2 * power + 1 <= value:
        power *= 2
    return power + 1 if power > 1 and power + 1 <= value else 1


def _odd_multiple(value: int, step: int) -> int:
    """The largest odd multiple of `step` that is smaller than `value`; `value` where there is none."""
    count = (value - 1) // step
    return step * (count - 1 + count % 2) if count > 0 else value


def _below(value: int) -> int:
    """The next smaller size: of the other parity, and aligned otherwise."""
    return max(value - 1, 1)


def _distinct_primes(sizes: Sizes, *, near: float) -> Sizes:
    """For each name a prime below some share of its size, no two alike where that can be."""
    taken: set[int] = set()
    primes: Sizes = {}
    for name, value in sizes.items():
        start = max(int(near * value) - 1, 2)
        prime = next((n for n in range(start, 1, -1) if _is_prime(n) and n not in taken), None)
        primes[name] = min(value, prime or value)
        taken.add(primes[name])
    return primes


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))
