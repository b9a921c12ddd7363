"""A search space of choices, steps and intervals: Optuna's distributions, and points as text.

A point is the text of an override for each parameter. Values with the same text are the same point, which
decides whether a point was evaluated before.
"""

import math
import random
from collections.abc import Container, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from pipeline.records.record import Record

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Scalar = bool | int | float | str | None
"""What Optuna can hold as the value of a parameter."""

Point = tuple[str, ...]
"""`name=text` for each parameter, in the order of the space."""

DRAWS = 100  # at random, before a finite space is walked through for a point that is new


class Choice(Record, frozen=True, kw_only=True, tag="choice"):
    """One of several values without an order."""

    name: str
    values: tuple[Scalar, ...]
    """Distinct under ==."""
    texts: tuple[str, ...]
    """How each value is written."""

    def __post_init__(self) -> None:
        """Raise ValueError for no value, or for two values with the same text."""
        if not self.values:
            raise ValueError("no value to choose from")
        if len(set(self.values)) < len(self.values) or len(self.values) != len(self.texts):
            raise ValueError(f"values that cannot be told apart: {', '.join(self.texts)}")

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)

    def at(self, index: int) -> Scalar:
        """The value with this index."""
        return self.values[index]

    def draw(self, generator: random.Random) -> Scalar:
        """A value, uniformly at random."""
        return generator.choice(self.values)

    def text(self, value: Scalar) -> str:
        """The text of the value."""
        return self.texts[self.values.index(value)]

    def distribution(self) -> "BaseDistribution":
        """Optuna's distribution."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.values)

    def __str__(self) -> str:
        return f"choice({','.join(self.texts)})"


class Steps(Record, frozen=True, kw_only=True, tag="steps"):
    """Evenly spaced numbers: `first`, `first + step`, … (`count` of them)."""

    name: str
    first: int | float
    step: int | float = 1
    count: int
    log: bool = False
    """Searched on a logarithmic scale; for whole numbers in steps of 1, as Optuna demands."""

    def __post_init__(self) -> None:
        """Raise ValueError for an empty range, or a logarithm that is undefined."""
        if self.count < 1:
            raise ValueError("no number in the range")
        if self.step <= 0 or not math.isfinite(self.first + self.step):
            raise ValueError(f"expected finite numbers and a step above 0, got a step of {self.step}")
        if self.log and (isinstance(self.first, float) or self.step != 1):
            raise ValueError("log is for intervals, and for whole numbers in steps of 1")
        if self.log and self.first < 1:
            raise ValueError(f"log needs numbers of 1 or more, got {self.first}")

    @property
    def size(self) -> int:
        """Number of values."""
        return self.count

    def at(self, index: int) -> int | float:
        """The number with this index, rounded to its decimal digits, so that 3 * 0.1 is 0.3."""
        exact = Decimal(str(self.first)) + index * Decimal(str(self.step))
        return float(exact) if self._real else int(exact)

    def draw(self, generator: random.Random) -> Scalar:
        """A number, uniformly at random."""
        return self.at(generator.randrange(self.count))

    def text(self, value: Scalar) -> str:
        """The text of the nearest number of the range."""
        index = round((_number(value) - self.first) / self.step)
        return repr(self.at(min(max(index, 0), self.count - 1)))

    def distribution(self) -> "BaseDistribution":
        """Optuna's distribution."""
        from optuna.distributions import FloatDistribution, IntDistribution

        last = self.at(self.count - 1)
        if self._real:
            return FloatDistribution(float(self.first), float(last), step=float(self.step))
        return IntDistribution(int(self.first), int(last), log=self.log, step=int(self.step))

    @property
    def _real(self) -> bool:
        return isinstance(self.first, float) or isinstance(self.step, float)

    def __str__(self) -> str:
        scale = ", log" if self.log else ""
        return f"{self.at(0)!r} to {self.at(self.count - 1)!r} by {self.step!r}{scale}"


class Interval(Record, frozen=True, kw_only=True, tag="interval"):
    """Any number between two ends, which are included."""

    name: str
    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for ends in the wrong order, or without a logarithm."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)) or self.low > self.high:
            raise ValueError(f"expected finite ends, the lower one first, got {self.low!r} and {self.high!r}")
        if self.log and self.low <= 0:
            raise ValueError(f"log needs ends above 0, got {self.low!r}")

    @property
    def size(self) -> int | None:
        """None: uncountable."""
        return 1 if self.low == self.high else None

    def at(self, index: int) -> float:  # noqa: ARG002
        """The only value of an interval of length 0."""
        return self.low

    def draw(self, generator: random.Random) -> Scalar:
        """Uniformly at random, on a logarithmic scale if `log` is set."""
        if not self.log:
            return generator.uniform(self.low, self.high)
        drawn = math.exp(generator.uniform(math.log(self.low), math.log(self.high)))
        return min(max(drawn, self.low), self.high)

    def text(self, value: Scalar) -> str:
        """The number with all significant digits."""
        return repr(_number(value))

    def distribution(self) -> "BaseDistribution":
        """Optuna's distribution."""
        from optuna.distributions import FloatDistribution

        return FloatDistribution(self.low, self.high, log=self.log)

    def __str__(self) -> str:
        return f"interval({self.low!r},{self.high!r}){', log' if self.log else ''}"


Parameter = Choice | Steps | Interval


class ParameterSpace(Record, frozen=True, kw_only=True):
    """All parameters of a search; their names are distinct."""

    parameters: tuple[Parameter, ...]

    @property
    def size(self) -> int | None:
        """Number of points; None: uncountable."""
        sizes = [parameter.size for parameter in self.parameters]
        return math.prod(size or 0 for size in sizes) if None not in sizes else None

    def distributions(self) -> dict[str, "BaseDistribution"]:
        """Optuna's distribution of each parameter, by name."""
        return {parameter.name: parameter.distribution() for parameter in self.parameters}

    def point(self, values: Mapping[str, Scalar]) -> Point:
        """The point of these values."""
        return tuple(
            f"{parameter.name}={parameter.text(values[parameter.name])}" for parameter in self.parameters
        )

    def described(self) -> dict[str, str]:
        """The range of each parameter as text, for messages and to compare spaces."""
        return {parameter.name: str(parameter) for parameter in self.parameters}

    def unseen(self, seen: Container[Point], generator: random.Random) -> dict[str, Scalar] | None:
        """Values of a random unseen point; None if none is left or can be found."""
        for _ in range(DRAWS):
            values = {parameter.name: parameter.draw(generator) for parameter in self.parameters}
            if self.point(values) not in seen:
                return values
        size = self.size or 0
        start = generator.randrange(size) if size else 0
        for offset in range(size):
            values = self.nth((start + offset) % size)
            if self.point(values) not in seen:
                return values
        return None

    def nth(self, index: int) -> dict[str, Scalar]:
        """Values of the point with this number, of a space that can be counted."""
        values: dict[str, Scalar] = {}
        for parameter in self.parameters:
            index, digit = divmod(index, parameter.size or 1)
            values[parameter.name] = parameter.at(digit)
        return values


def _number(value: Scalar) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"expected a number, got {value!r}")
    return float(value)
