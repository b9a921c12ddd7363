"""A toy: a quadratic over numbers and a choice, and an exploration of it that nothing keeps."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pipeline.search.sampling.parameter_space import Choice, Interval, ParameterSpace, Steps
from pipeline.search.sampling.samplers import Sampler
from pipeline.search.sampling.study import Exploration, MeasuredPoint, Purpose, exploration

NUMBERS = ParameterSpace(
    parameters=(Interval(name="x", low=-4.0, high=4.0), Steps(name="y", first=-8, count=17))
)
COUNTED = ParameterSpace(
    parameters=(
        Choice(name="shape", values=("round", "square"), texts=("round", "square")),
        Steps(name="y", first=0, count=3),
    )
)
MIXED = ParameterSpace(parameters=(*NUMBERS.parameters, COUNTED.parameters[0]))


def quadratic(point: tuple[str, ...]) -> float:
    """Least, 0, at x = 1, y = 2, shape = round; what a point does not have is at its best."""
    values = dict(part.split("=") for part in point)
    x, y = float(values.get("x", 1)), int(values.get("y", 2))
    return (x - 1) ** 2 + (y - 2) ** 2 / 4 + (values.get("shape", "round") == "square")


@contextlib.contextmanager
def opened(
    space: ParameterSpace,
    sampler: Sampler | None = None,
    *,
    file: Path | None = None,
    name: str | None = "toy",
    directions=("minimize",),
) -> Iterator[Exploration]:
    """The exploration of a space, in memory or in a file."""
    purpose = Purpose(space=space, directions=directions)
    storage = None if file is None else f"sqlite:///{file}"
    with exploration(purpose, sampler or Sampler(name="random"), storage=storage, name=name) as explored:
        yield explored


def run(explored: Exploration, trials: int, batch: int = 4) -> list[tuple[str, ...]]:
    """Evaluate so many points in batches; returns them, in order."""
    points = []
    while len(points) < trials:
        asked = explored.ask(min(batch, trials - len(points)), explored.next_job())
        if not asked:
            break
        for one in asked:
            value = quadratic(one.point)
            explored.tell(one, MeasuredPoint(values=(value,) * len(explored.directions)))
            points.append(one.point)
    return points
