"""A kernel as its yaml declares it: reference, tensors, cost, tolerance, implementations."""

from typing import Literal

from pipeline.records.record import Record

TunableValue = bool | int | float | str
"""One value of a tunable or an attribute."""


class Tensor(Record, frozen=True, kw_only=True):
    """One tensor argument; the C ABI has inputs first, then outputs, each in declared order."""

    role: Literal["input", "output"]
    shape: tuple[str, ...]
    """Names of the kernel's dimensions, outermost first."""
    dtype: str = "element"
    """`element` (the workload's dtype) or a torch dtype name."""
    layout: Literal["contiguous", "row_strided"] = "contiguous"
    """`row_strided`: the last axis is contiguous, the one before it may be padded (its stride is passed)."""


class Tunable(Record, frozen=True, kw_only=True):
    """A named axis of an implementation."""

    values: tuple[TunableValue, ...]
    default: TunableValue
    technique: str | None = None
    """The optimization technique that this axis expresses, for example `vectorization`."""
    off: TunableValue | None = None
    """The value that switches the technique off."""
    description: str = ""


class Constraint(Record, frozen=True, kw_only=True):
    """A condition between tunables, dimensions, attributes and hardware limits."""

    rule: str
    reason: str


class Implementation(Record, frozen=True, kw_only=True):
    """One way to compute the kernel."""

    backend: str
    """A name of `pipeline.backends`."""
    source: str
    """Path of the source from the repository's root."""
    entry: str
    """The function to call in it."""
    tunables: dict[str, Tunable] = {}
    constraints: tuple[Constraint, ...] = ()
    origin: str
    licence: str


class Cost(Record, frozen=True, kw_only=True):
    """Formulas over dimensions and `itemsize` (bytes of the element type)."""

    flops: str
    bytes: str
    """Compulsory traffic: every input read once, every output written once."""
    unit: Literal["matrix", "vector"] = "vector"
    """Which peak bounds it: matrix units or the vector unit."""


class Tolerance(Record, frozen=True, kw_only=True):
    """What the error bound is derived from; see `pipeline.checks.tolerance`."""

    magnitude: str
    """`module:function`, called like the reference in float64: the magnitudes that entered each output."""
    reduction: str
    """Formula: how many terms are accumulated into one output."""
    accumulate: str = "float32"
    """Type in which terms are accumulated."""
    factor: float = 1.0
    """Documented widening beyond the derived bound; `reason` says why where it is not 1."""
    reason: str


class Kernel(Record, frozen=True, kw_only=True):
    """An operator, as `conf/kernel/<name>.yaml` declares it."""

    name: str
    description: str
    category: str
    dimensions: dict[str, str]
    """Dimension name -> expression over the workload's dimensions."""
    tensors: dict[str, Tensor]
    scalars: dict[str, float] = {}
    """Constants passed at run time, for example `eps`."""
    attributes: dict[str, TunableValue] = {}
    """Choices fixed at compile time that change what is computed, for example `epilogue`."""
    reference: str
    """`module:function`: tensors in declared order (inputs only) and scalars, attributes by keyword."""
    deterministic: bool = True
    """Whether the kernel claims equal bits on equal inputs."""
    special_values: bool = True
    """Whether NaN and infinity propagate as in the reference."""
    cost: Cost
    tolerance: Tolerance
    implementations: dict[str, Implementation]
