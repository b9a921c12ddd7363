"""A kernel as its yaml declares it: reference, tensors, cost, tolerance, implementations."""

from typing import Literal

from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.record import Record

TunableValue = bool | int | float | str
"""One value of a tunable or an attribute."""


DERIVED = "derived"
"""In place of a magnitude: see `Tolerance`."""


class Tensor(Record, frozen=True, kw_only=True):
    """One tensor argument; the C ABI has inputs first, then outputs, each in declared order."""

    role: Literal["input", "output"]
    """Whether the kernel reads or writes it."""
    shape: tuple[str, ...]
    """Names of the kernel's dimensions, or formulas over them and attributes, outermost first."""
    dtype: str = "element"
    """`element` (the workload's dtype) or a torch dtype name."""
    layout: Literal["contiguous", "row_strided"] = "contiguous"
    """`row_strided`: the last axis is contiguous, the one before it may be padded (its stride is passed)."""
    at_least: int | str = 0
    """For integer inputs: the smallest value, a number or a formula over dimensions."""
    below: int | str | None = None
    """For integer inputs: the number above the largest value, for example the dimension that they index, or a
    formula. Without it, the values are 0 and 1."""
    cumulative: bool = False
    """For integer inputs: cumulative lengths, which ascend along the last axis up to the largest value."""
    distinct: bool = False
    """For integer inputs: no number twice along the last axis, if the range has as many."""
    nonnegative: bool = False
    """For floating-point inputs that have no sign, such as rates and sums of squares: drawn so."""
    row_norm: float | None = None
    """For floating-point inputs: rows (along the last axis) of a larger Euclidean norm are scaled to it."""


class Tunable(Record, frozen=True, kw_only=True):
    """A named axis of an implementation."""

    values: tuple[TunableValue, ...]
    """All values that a search may choose."""
    default: TunableValue
    """The value if the tunable is not free."""
    prefer: tuple[TunableValue, ...] = ()
    """Values to take in place of the default where the rules allow them, best first.

    Those that an override of `values` leaves out do not count."""
    technique: str | None = None
    """The optimization technique that this axis expresses, for example `vectorization`."""
    off: TunableValue | None = None
    """The value that switches the technique off."""
    description: str = ""
    """What the tunable does."""


class Constraint(Record, frozen=True, kw_only=True):
    """A condition between tunables, dimensions, attributes and hardware limits."""

    rule: str
    """Expression that a valid point satisfies."""
    reason: str
    """Why other points are invalid."""


class Given(Record, frozen=True, kw_only=True):
    """An argument of a call that is neither a name nor a number: exactly one of the two."""

    literal: str | None = None
    """A string literal, for example `gemma`."""
    copy: str | None = None
    """A tensor that the callable overwrites: it gets a copy, and copying counts as part of the call."""

    def __post_init__(self) -> None:
        """Exactly one of the fields must be set."""
        if (self.literal is None) == (self.copy is None):
            raise ValueError("an argument is a name, a number, true, false, null, {literal: …} or {copy: …}")


Argument = str | bool | int | float | None | Given
"""A string is the name of a tensor, scalar, attribute or tunable; numbers, truth values and null stand for
themselves."""


class Gradients(Record, frozen=True, kw_only=True):
    """The results are gradients: the callable runs forward, then backward through autograd."""

    of: tuple[str, ...]
    """Names of the tensors among the arguments, in the order of the results."""
    upstream: tuple[str, ...]
    """Names of the tensors that hold the gradients of what the callable returns, in its order."""


class Call(Record, frozen=True, kw_only=True):
    """A callable of an installed package, and how its arguments and results map to the kernel's tensors."""

    function: str
    """`module:function`, or `module:Class.apply` of a `torch.autograd.Function`."""
    arguments: tuple[Argument, ...]
    """Positional arguments: names of tensors, scalars, attributes or tunables, or literals."""
    keywords: dict[str, Argument] = {}
    """Keyword arguments, likewise."""
    results: tuple[str | None, ...]
    """The output for each returned tensor; null to ignore one. Further tensors are ignored."""
    gradients: Gradients | None = None
    """For a backward kernel: which gradients the call returns."""
    package: str
    """The distribution to install, as `pip` calls it."""
    extra: str | None = None
    """The extra of this project that installs it."""


class LaunchFormulas(Record, frozen=True, kw_only=True):
    """Launch geometry of a CUDA C++ source: formulas over the same names as constraints."""

    grid: tuple[int | str, ...]
    """Blocks along x, y, z (one to three). If one of them is 0, nothing is launched."""
    block: tuple[int | str, ...]
    """Threads of a block, likewise."""
    shared_memory: int | str = 0
    """Bytes of dynamic shared memory per block."""
    cluster: tuple[int | str, ...] | None = None
    """Blocks of a cluster (sm_90 and later); the grid is still counted in blocks."""


class Implementation(Record, frozen=True, kw_only=True):
    """One way to compute the kernel: a source of this repository, or a call of an installed package."""

    backend: str
    """Name of the backend: `cpp`, `triton`, `cuda`, …"""
    source: str = ""
    """Path of the source from the repository's root."""
    entry: str = ""
    """The function to call in it."""
    call: Call | None = None
    """A function of an installed package, instead of `source` and `entry`."""
    launch: LaunchFormulas | None = None
    """Launch geometry, for the backend `cuda`."""
    uses_torch: tuple[str, ...] = ()
    """Operators of PyTorch that compute a part of it (`aten::sum`); any other one is `tampered`."""
    tunables: dict[str, Tunable] = {}
    """Tunable name -> its values."""
    constraints: tuple[Constraint, ...] = ()
    """Rules that valid points satisfy."""
    origin: str
    """Where the source is from: a URL, or `this project`."""
    licence: str
    """SPDX identifier."""

    @property
    def called(self) -> str | Call | tuple[str, LaunchFormulas]:
        """What is called, for the identity of an artifact: its content is in the variant's source digest."""
        if self.launch is not None:
            return self.entry, self.launch
        return self.call or self.entry


class Cost(Record, frozen=True, kw_only=True):
    """Formulas over dimensions and `itemsize` (bytes of the element type)."""

    flops: str | None
    """Operations of a call."""
    bytes: str | None
    """Compulsory traffic: every input read once, every output written once."""
    unit: Literal["matrix", "vector"] = "vector"
    """Which peak bounds it: matrix units or the vector unit."""
    products: Literal["int8"] | None = None
    """Type of its matrix products if it is not the workload's: `int8` for any type of 8 bits, which devices
    multiply at one rate."""


class Vendor(Record, frozen=True, kw_only=True):
    """A vendor library's operator that computes the same, reached through PyTorch: a baseline."""

    function: str
    """`module:function`, called like the reference."""
    set_up: str | None = None
    """`module:function`, called once in the baseline's process: chooses the library."""
    prepare: str | None = None
    """`module:function`, called like the reference before calls are timed: returns all arguments of
    `function`, for a library that keeps the inputs in another form."""
    kinds: tuple[DeviceKind, ...]
    """Kinds of target that have it."""
    description: str
    """The library and the operator."""


class Tolerance(Record, frozen=True, kw_only=True):
    """What the error bound is derived from; see `pipeline.verify.oracle.tolerance`."""

    magnitude: str
    """`module:function`, called like the reference in float64: the magnitudes that entered each output. Or
    `derived`: the bound is sampled from the rounding errors of the reference's own operations."""
    reduction: str = "1"
    """Formula for the number of terms that are accumulated into one output; not used if `derived`."""
    accumulate: str = "float32"
    """Type in which terms are accumulated."""
    factor: float = 1.0
    """Widening of the derived bound; if it is not 1, `reason` says why."""
    reason: str
    """Why the bound is right."""


class GradientOf(Record, frozen=True, kw_only=True):
    """Which gradients a backward kernel returns; its reference is autograd of the other kernel's."""

    kernel: str
    """The forward kernel; both kernels name the same `reference`."""
    inputs: tuple[str, ...]
    """Inputs of the forward kernel, one for each output, in the order of the outputs."""
    upstream: tuple[str, ...]
    """Inputs that are the gradients of the forward kernel's outputs, in the order of those."""


class Kernel(Record, frozen=True, kw_only=True):
    """An operator, as `conf/kernel/<name>.yaml` declares it."""

    name: str
    """Name of the option, equal to the file's."""
    description: str
    """One sentence for listings and reports."""
    category: str
    """Kind of operator, for example `reduction`; language models get examples of the same category."""
    dimensions: dict[str, str]
    """Dimension name -> expression over the workload's dimensions."""
    tensors: dict[str, Tensor]
    """Tensor name -> its role, shape and layout; the order is that of the arguments."""
    scalars: dict[str, float] = {}
    """Constants passed at run time, for example `eps`."""
    attributes: dict[str, TunableValue] = {}
    """Choices fixed at compile time that change what is computed, for example `epilogue`."""
    reference: str
    """`module:function` in PyTorch: takes the inputs in declared order; scalars and attributes by keyword."""
    gradient_of: GradientOf | None = None
    """For a backward kernel: the forward kernel whose reference is differentiated."""
    deterministic: bool = True
    """Whether the kernel claims equal bits on equal inputs."""
    special_values: bool = True
    """Whether NaN and infinity propagate as in the reference."""
    linear: bool = False
    """Whether the outputs are only sums of products of inputs, so that small integers must be exact."""
    cost: Cost
    """Operations and memory traffic of a call."""
    tolerance: Tolerance
    """What the error bound is derived from."""
    implementations: dict[str, Implementation]
    """Implementation name -> its source, tunables and constraints."""
    space: str | None = None
    """For recorded measurements, instead of reference, tensors and implementations: path of a T1 file with
    the space, or `recorded` for the values that occur in the measurements."""
    vendors: dict[str, Vendor] = {}
    """Baseline name -> operator of a vendor's library."""
