"""Tensors of a nominal dtype that hold float64 values and know how they would be rounded.

In: tensors of any dtype. Out: `Rounded` wrappers that user code takes for tensors of that dtype, reproducible
noise to add rounding errors to them, and what the runs of one function share (`OperationMemory`).
"""

import contextlib
import math
import sys
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import torch

from pipeline.verify.torch_internals import make_wrapper_subclass, no_torch_function, schema_of

WIDE = {
    torch.float64: torch.float64,
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
    torch.complex128: torch.complex128,
}
"""Nominal dtype -> the dtype it is computed in. Types of eight bits are only converted from and to."""

NARROW = (torch.float16, torch.bfloat16)

EIGHT_BITS = (
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
)
"""Their `Rounded` tensors hold values before the rounding to 8 bits, which whatever reads them adds."""


class ValueSources(NamedTuple):
    """What a value was computed from; without either, from constants alone."""

    narrow: torch.dtype | None = None
    """The one 16-bit type of tensors among them."""
    narrow_size: int = 0
    """Elements of the largest of these."""
    wide_size: int = 0
    """Elements of the largest tensor of another type."""

    @property
    def operand_dtype(self) -> torch.dtype | None:
        """The 16-bit type to which an operand of a product may be rounded.

        Smaller tensors of a wider type change nothing: slopes of positions, tables of angles, the weight of
        a norm, a temperature.
        """
        return self.narrow if self.wide_size <= self.narrow_size else None


NO_SOURCES = ValueSources()
WIDE_SOURCES = ValueSources(wide_size=sys.maxsize)

HOST = "cpu"  # as torch names it
_POOL = 1 << 20  # random numbers at most that are drawn once and read from random places
_ROOM = 16  # times what is drawn from it


class Rounded(torch.Tensor):
    """A tensor whose `dtype` is nominal and whose `value` is its value before any rounding.

    Made by `wrap`; every operation on it goes to the `arithmetic` that made it.
    """

    value: torch.Tensor
    arithmetic: Any
    sources: ValueSources = WIDE_SOURCES
    terms: float = 0.0
    """Of the product of matrices that it is the result of: what is added to it may have been in the sum."""
    computed: bool = True
    """Whether it is more than a view or a conversion of what the function was given."""
    operand_error: Callable[[], torch.Tensor] | None = None
    """Of a product of 16-bit inputs: draws what rounding its operands once more would change it by."""
    scale_error: torch.Tensor | None = None
    """Of such a product times a number: the part of `value` that rounding a scaled operand makes."""
    factors: tuple[bool, ...] | None = None
    """Of a product of two computed tensors: along which axes, counted from the last one, both vary."""
    __torch_function__: ClassVar[Any] = no_torch_function

    @staticmethod
    def __new__(
        cls: type["Rounded"],
        value: torch.Tensor,
        dtype: torch.dtype,
        arithmetic: Any,
        requires_grad: bool = False,
    ) -> "Rounded":
        """A wrapper of `value`, float64 or complex128, that is not copied."""
        made: Rounded = make_wrapper_subclass(
            cls,
            value.size(),
            strides=value.stride(),
            storage_offset=value.storage_offset(),
            dtype=dtype,
            device=value.device,
            requires_grad=requires_grad,
        )
        made.value = value
        made.arithmetic = arithmetic
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"Rounded({self.value}, dtype={self.dtype})"

    def __deepcopy__(self, memo: dict[int, Any]) -> "Rounded":
        return Rounded(self.value.clone(), self.dtype, self.arithmetic, self.requires_grad)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, arguments: Any = (), keywords: Any = None
    ) -> Any:
        """Outside of the mode, for example when it is printed: without rounding."""
        first = next(item for item in flat((arguments, keywords or {})) if isinstance(item, Rounded))
        return first.arithmetic.apply(function, arguments, keywords or {})


def sources_of(items: Iterable[Any]) -> ValueSources:
    """Of what is computed from some values together."""
    all_of_them = [
        item.sources if isinstance(item, Rounded) else source_of(item) for item in items if is_inexact(item)
    ]
    narrow = {each.narrow for each in all_of_them if each.narrow is not None}
    if len(narrow) > 1:
        return WIDE_SOURCES
    return ValueSources(
        narrow=next(iter(narrow), None),
        narrow_size=max((each.narrow_size for each in all_of_them), default=0),
        wide_size=max((each.wide_size for each in all_of_them), default=0),
    )


def source_of(tensor: torch.Tensor) -> ValueSources:
    """Of a tensor that is given."""
    if tensor.dtype in NARROW:
        return ValueSources(narrow=tensor.dtype, narrow_size=tensor.numel())
    return ValueSources(wide_size=tensor.numel())


def is_inexact(item: object) -> bool:
    """Whether an item is a tensor whose elements may carry rounding errors."""
    return isinstance(item, torch.Tensor) and (item.is_floating_point() or item.is_complex())


def widen(item: Any) -> Any:
    """The float64 value of a wrapper or of a plain tensor; anything else unchanged."""
    if isinstance(item, Rounded):
        return item.value
    if isinstance(item, torch.Tensor) and (item.is_floating_point() or item.is_complex()):
        return item.detach().to(wide(item.dtype))
    return item


def wide(dtype: torch.dtype) -> torch.dtype:
    """What a dtype is computed in."""
    if dtype.is_floating_point or dtype.is_complex:
        return WIDE.get(dtype, torch.float64)
    return dtype


def unit(dtype: torch.dtype) -> float:
    """Unit roundoff of a floating or complex dtype."""
    return float(torch.finfo(dtype).eps) / 2


def accumulation_unit(dtype: torch.dtype) -> float:
    """Unit roundoff of what results of a dtype are accumulated in: float32, or float64 for itself."""
    return unit(dtype) if dtype in (torch.float64, torch.complex128) else unit(torch.float32)


def transform(item: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to every leaf of nested tuples, lists and dicts."""
    if isinstance(item, tuple):
        leaves = [transform(part, function) for part in item]
        return type(item)(*leaves) if hasattr(item, "_fields") else tuple(leaves)
    if isinstance(item, list):
        return [transform(part, function) for part in item]
    if isinstance(item, dict):
        return {key: transform(part, function) for key, part in item.items()}
    return function(item)


def flat(item: Any) -> list[Any]:
    """The leaves of nested tuples, lists and dicts, in order; of a dict by its keys."""
    if isinstance(item, tuple | list):
        return [leaf for part in item for leaf in flat(part)]
    if isinstance(item, dict):
        return [leaf for key in sorted(item, key=str) for leaf in flat(item[key])]
    return [item]


class Noise:
    """Random numbers of mean 0 and variance 1, uniform, from a seed; they lie where new tensors do.

    They are drawn on the host, so that a seed gives the same ones everywhere. Large tensors of a device get
    numbers of its own: to draw and to move the host's would take longer than all else.
    """

    def __init__(self, seed: int) -> None:
        self._device = torch.get_default_device()
        self._generator = torch.Generator(HOST).manual_seed(seed)
        self._there = self._generator
        with contextlib.suppress(RuntimeError):  # a device without random numbers
            self._there = torch.Generator(self._device).manual_seed(seed)
        self._pool = self._fresh(_POOL >> 4, self._generator)

    def draw(self, shape: torch.Size) -> torch.Tensor:
        """Numbers of a shape, float64; read-only, as small ones are views of one pool."""
        count = shape.numel()
        if count > _POOL // 2:
            return self._fresh(count, self._there).view(shape)
        size = self._pool.numel()
        if size < min(_ROOM * count, _POOL):
            size = min(1 << (_ROOM * count).bit_length(), _POOL)
            self._pool = self._fresh(size, self._generator)
        start = int(torch.randint(0, size - count, (), generator=self._generator, device=HOST))
        return self._pool[start : start + count].view(shape)

    def _fresh(self, count: int, generator: torch.Generator) -> torch.Tensor:
        numbers = torch.empty(count, dtype=torch.float64, device=generator.device)
        numbers.uniform_(-math.sqrt(3.0), math.sqrt(3.0), generator=generator)
        return numbers.to(self._device)


class ChoiceOrder(NamedTuple):
    """In which order choices look at their elements, where PyTorch looks at them from the first one."""

    generator: torch.Generator | None
    """Of random orders; None: in reverse."""


class OperationMemory:
    """What the runs of one function share: dtypes of results, deviations, and which operations fell back."""

    def __init__(self) -> None:
        self.dtypes: dict[Any, list[torch.dtype]] = {}
        self.deviations: list[tuple[str, Any]] = []
        self.bytes = 0
        self.work = 0.0
        """Elements that were read and written, multiplications weighted."""
        self.decisions: list[tuple[str, list[torch.Tensor]]] = []
        """Operands of steps (`round`, comparisons) where no rounding can have touched them, NaN elsewhere."""
        self.steps = 0
        """How many steps the first run met."""
        self.only_exact = False
        """Whether results that any implementation may round are NaN in this run."""
        self.unsupported: set[str] = set()
        self.narrow: torch.dtype | None = None
        """The 16-bit type that an input has."""
        self.chooses = False
        """Whether elements were chosen by their values: `topk`, `argmax`, ..."""
        self.order: ChoiceOrder | None = None
        """In which order choices look at them now; None: as PyTorch does."""
        self.equal_rows = False
        """Whether all rows of an input with 16 bits have one value each."""
        self.mixed_precision = True
        """Whether operands of products may be rounded to the 16-bit type that they come from."""
        self.tf32_products = False
        """Whether operands of products in float32 may be cut off to tf32."""
        self.exponent = 0.0
        """The largest mean magnitude of what was exponentiated: decays of a recurrence."""
        self.states: dict[tuple[int, ...], float] = {}
        """Shape -> the largest root mean square of sums of this shape, where an input has 16 bits."""

    def note_exponent(self, argument: torch.Tensor) -> None:
        """What is exponentiated, unless the largest of its row was taken off, as a softmax does."""
        if argument.is_complex() or not argument.dim() or not argument.numel():
            return
        size = float(argument.abs().mean())
        if math.isfinite(size) and bool((argument.amax(-1) != 0.0).any()):
            self.exponent = max(self.exponent, size)

    def note_state(self, value: torch.Tensor) -> None:
        """A sum that may be the state of a recurrence."""
        if self.narrow is not None and value.numel():
            size = float(value.square().mean().sqrt())
            if math.isfinite(size):
                shape = tuple(value.shape)
                self.states[shape] = max(self.states.get(shape, 0.0), size)


def twin_of(name: str, function: Any) -> Any:
    """The operation that returns what this one writes to its first argument, or None."""
    schema = schema_of(function)
    written = [item for item in schema.arguments if item.alias_info is not None and item.alias_info.is_write]
    if not name.endswith("_") or len(written) != 1 or written[0].name != schema.arguments[0].name:
        return None
    packet = getattr(torch.ops.aten, name[:-1], None)
    if packet is None:
        return None
    wanted = [str(item.type) for item in schema.arguments]
    overloads = (getattr(packet, overload) for overload in packet.overloads())
    return next((item for item in overloads if _types(item) == wanted), None)


def _types(function: Any) -> list[str]:
    return [str(item.type) for item in schema_of(function).arguments]


def wide_dtype(item: Any) -> Any:
    """A dtype widened, anything else as it is."""
    return wide(item) if isinstance(item, torch.dtype) else item
