"""How many threads one call starts. In: the formulas of `launch` and a call's dimensions. Out: numbers."""

import math

from pipeline.backends.backend import CompileJob
from pipeline.records.configuration.kernel import LaunchFormulas
from pipeline.records.errors import FormulaError
from pipeline.records.formula import ELEMENT_BYTES, evaluate_number, names_in
from pipeline.records.record import Record

AXES = 3


class LaunchGeometry(Record, frozen=True, kw_only=True):
    """Of one launch."""

    grid: tuple[int, ...]
    """Blocks along x, y, z."""
    block: tuple[int, ...]
    """Threads of a block along x, y, z."""
    shared_memory: int
    """Bytes of dynamic shared memory per block."""
    cluster: tuple[int, ...] | None = None

    @property
    def threads(self) -> int:
        """Of one block."""
        return math.prod(self.block)

    @property
    def is_empty(self) -> bool:
        """Nothing is to be done."""
        return 0 in self.grid


def geometry_of(job: CompileJob, dimensions: dict[str, int]) -> LaunchGeometry:
    """Evaluate the implementation's `launch` for the dimensions of a call.

    Raises
    ------
    FormulaError
        A formula cannot be evaluated, or its value is no whole number of at least 0.
    """
    launch = job.implementation.launch
    assert launch is not None, "the configuration asks every cuda implementation for one"
    names = {
        **job.target.limits,
        **job.problem.attributes,
        **dimensions,
        "itemsize": ELEMENT_BYTES[job.problem.element],
        **job.variant.tunables,
    }

    def number(formula: int | str) -> int:
        value = formula if isinstance(formula, int) else evaluate_number(formula, names)
        if value != int(value) or value < 0:
            raise FormulaError(f"`{formula}`: expected a whole number of at least 0, got {value:g}")
        return int(value)

    def axes(formulas: tuple[int | str, ...]) -> tuple[int, ...]:
        return (*map(number, formulas), *[1] * (AXES - len(formulas)))

    return LaunchGeometry(
        grid=axes(launch.grid),
        block=axes(launch.block),
        shared_memory=number(launch.shared_memory),
        cluster=None if launch.cluster is None else axes(launch.cluster),
    )


def limits_read(launch: LaunchFormulas, limits: dict[str, int]) -> dict[str, int]:
    """The target's limits that the formulas name: with others the same source starts other threads."""
    texts = [formula for formula in formulas(launch).values() if isinstance(formula, str)]
    names = {name for text in texts for name in names_in(text)}
    return {name: limit for name, limit in limits.items() if name in names}


def formulas(launch: LaunchFormulas) -> dict[str, int | str]:
    """Every formula by its key: `grid[0]`, …, for those who check them before they are used."""
    found: dict[str, int | str] = {"shared_memory": launch.shared_memory}
    for key in ("grid", "block", "cluster"):
        for number, formula in enumerate(getattr(launch, key) or ()):
            found[f"{key}[{number}]"] = formula
    return found
