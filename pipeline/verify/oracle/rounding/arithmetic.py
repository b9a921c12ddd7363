"""Runs PyTorch code in float64 and adds to every result the error that rounding it would make.

In: any operations of user code, through a dispatch mode. Out: `Rounded` tensors of the dtypes that the
user's code would see. Without noise the values are the reference; with noise they are one sample of a
computation whose every step is rounded at random (Monte Carlo arithmetic: Parker 1997, UCLA CSD-970002;
CESTAC: Vignes 1993, doi:10.1016/0378-4754(93)90003-D).
"""

import functools
import itertools
import logging
import math
from collections.abc import Callable
from typing import Any

import torch

from pipeline.sandbox.torch_internals import TorchDispatchMode
from pipeline.verify.oracle.rounding.composites import decomposition
from pipeline.verify.oracle.rounding.elementwise import ELEMENTWISE, EXACT, TIES, UNITS
from pipeline.verify.oracle.rounding.exactness import is_step, never_rounds, where_held, without_noise
from pipeline.verify.oracle.rounding.rounded_tensors import (
    EIGHT_BITS,
    NARROW,
    NO_SOURCES,
    WIDE_SOURCES,
    Noise,
    OperationMemory,
    Rounded,
    ValueSources,
    accumulation_unit,
    flat,
    is_inexact,
    source_of,
    sources_of,
    transform,
    twin_of,
    unit,
    wide,
    wide_dtype,
    widen,
)
from pipeline.verify.oracle.rounding.sums import PARTS, SUMS, Operation, multiplications, started, terms_of
from pipeline.verify.oracle.selection import EDGES, RUNNING, IndexSelection, other_choice, selection_of
from pipeline.verify.oracle.selection import OPERATORS as SELECTING
from pipeline.verify.oracle.tolerance import TF32_UNIT, cut_to_tf32
from pipeline.verify.torch_internals import operator_name, schema_of, without_dispatch

logger = logging.getLogger(__name__)

SELECTION, UNORDERED = "_selection", "_unordered"
"""Attributes of results: what indices were chosen from, whether elements have no order."""
_ROUNDING = 0.6  # standard deviation of one rounding in units; uniform over a whole unit would be 0.58
_CUT_TOGETHER, _CUT_APART = 0.36, 0.2  # of the largest error: mean of a number cut off, deviation from that
_INPUT_UNITS = 2.0  # perturbation of what goes into an operation that nothing is known of
_LONGEST_TRANSFORM = 1024  # terms; longer ones are computed in steps by everybody
_OF_MATRICES = ("linalg", "cholesky", "triangular")
"""In the names of factorizations and what is done with them: a stable algorithm gives the exact result of a
matrix whose elements are off by a few units of the largest one (Higham 2002, Accuracy and Stability of
Numerical Algorithms, chapters 9, 10 and 14), not of each element's own size."""
_HALF_STEP = 2.0**-25  # half the smallest subnormal of float16
_AT_ONCE = 64  # multiplications of a product of matrices in the time of one elementwise one
_SAME_VALUES = frozenset(
    (
        "view",
        "_unsafe_view",
        "reshape",
        "permute",
        "transpose",
        "t",
        "unsqueeze",
        "squeeze",
        "expand",
        "_to_copy",
        "clone",
    )
)
_STATES = frozenset({"add", "sub", "addcmul", "addmm", "baddbmm", "addbmm", "lerp"})
"""What makes a state of a recurrence from the one before."""
_LAZY_VIEWS = {"_conj": torch.conj_physical, "_neg_view": torch.neg}
"""Views that PyTorch computes when they are used, which nothing does to the values inside of wrappers."""
_REMEMBERED = 1 << 28  # bytes of deviations that are kept from the first run for the next


class Arithmetic(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode in which floating point results are `Rounded`; with `noise` they carry errors."""

    def __init__(self, memory: OperationMemory, noise: Noise | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._memory = memory
        self._noise = noise
        self._position = self._step = 0
        self._recording = not memory.deviations

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        """Run one operation."""
        return self.apply(function, arguments, keywords or {})

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here; to say so to the compiler would import it, which takes a second."""
        return False

    def wrap(self, tensor: torch.Tensor, *, requires_grad: bool = False) -> torch.Tensor:
        """An exact input: the wrapper of a floating point tensor, a copy of any other."""
        if not is_inexact(tensor):
            return tensor.detach().clone()
        if tensor.dtype in NARROW:
            self._memory.narrow = tensor.dtype
            self._memory.equal_rows |= tensor.dim() > 1 and _independent(tensor) != tensor.shape
        value = widen(tensor)
        value = value.clone() if value.dtype == tensor.dtype else value
        made = Rounded(value, tensor.dtype, self, requires_grad)
        made.sources = source_of(tensor)
        made.computed = False
        return made

    def rounded(self, value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Wrap a fresh result with the error of its last rounding; integers stay as they are."""
        if not (dtype.is_floating_point or dtype.is_complex):
            return value.to(dtype)
        if dtype in EIGHT_BITS:
            return Rounded(value.to(wide(dtype)), dtype, self)
        return Rounded(self._err(value.to(wide(dtype)).clone(), dtype, None), dtype, self)

    def apply(self, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run one operation: in place, decomposed, or as it is."""
        name = operator_name(function).rpartition("::")[2]
        rule = decomposition(function, name)
        if schema_of(function).is_mutable and rule is None:
            return self._in_place(name, function, arguments, keywords)
        if not any(is_inexact(item) for item in flat((arguments, keywords))):
            return self._without_floats(function, arguments, keywords)
        if rule is not None:
            try:
                with self:
                    return rule(*arguments, **keywords)
            except (RuntimeError, TypeError, NotImplementedError, ValueError) as error:
                self._note(name, f"decomposition failed: {error}")
        elif name not in SUMS and name not in UNITS and name not in EXACT:
            with self:
                result = function.decompose(*arguments, **keywords)
            if result is not NotImplemented:
                return result
        return self._compute(name, function, arguments, keywords)

    def _compute(self, name: str, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if torch.Tag.nondeterministic_seeded in function.tags or function is torch.ops.aten.view.dtype:
            return self._nominally(function, arguments, keywords)
        sources = sources_of(flat((arguments, keywords)))
        if None in _operand_dtypes(name, arguments):
            sources = WIDE_SOURCES  # a matrix of a wider type is in every element, however small it is
        values = tuple(
            self._operand(name, number, arguments, transform(item, widen))
            for number, item in enumerate(arguments)
        )
        named = {key: wide_dtype(transform(item, widen)) for key, item in keywords.items()}
        values = self._decided(name, values, named)
        known = name in EXACT or name in ELEMENTWISE or name in UNITS or name in SUMS
        if self._noise is not None and (not known or name in TIES):
            size = 1e-13 if name in TIES else _INPUT_UNITS * self._finest(arguments)
            matrices = name not in TIES and any(word in name for word in _OF_MATRICES)
            values = transform(values, lambda item: self._perturb(item, size, matrices=matrices))
        try:
            result = self._chosen(name, function, values, named)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            self._note(name, f"does not run in float64: {error}")
            return self._nominally(function, arguments, keywords)
        if not known:
            self._note(name, "has no rule: condition measured by perturbing its inputs")
        dtypes = nominal_dtypes(Operation(function, arguments, keywords), result, self._memory.dtypes)
        self._memory.work += sum(item.numel() for item in flat((values, result)) if is_inexact(item))
        self._memory.work += multiplications(Operation(function, values, named), result) / _AT_ONCE
        if name in EXACT:
            note_selection(function, values, named, result)
            same = with_sources(self._exact(name, arguments, result, dtypes), sources)
            return _with_operand_error(name, function, arguments, keywords, same)
        call = Operation(function, values, named)
        deviations = self._deviations(call, result)
        if name in PARTS and dtypes[0] in (torch.float16, torch.bfloat16):
            parts = PARTS[name](call, result, dtypes[0]) * (unit(dtypes[0]) / unit(torch.float32))
            deviations = [torch.hypot(deviations[0], parts), *deviations[1:]]
        if name.startswith("_fft_"):
            deviations = [_transform_deviation(arguments, result)]
        if name == "sum":
            deviations = self._narrow_factors(call, arguments[0], deviations)
        if name in PRODUCTS:  # a bias of as many elements, such as a mask of scores, is a small tensor then
            sources = sources._replace(narrow_size=max(sources.narrow_size, result.numel()))
        self._note_recurrence(name, values, result)
        if name in ("add", "sub"):
            deviations = _added_to_product(arguments, result) or deviations
        result, scale_error = _scaled(name, arguments, keywords, self._certain(name, values, result))
        finished = with_sources(self._rounded(result, dtypes, deviations), sources)
        if isinstance(finished, Rounded):
            finished.scale_error = scale_error
            finished.terms = terms_of(call, result)
            finished.operand_error = self._operand_error(call, sources)
            finished.factors = _factors(arguments, self._memory.narrow) if name == "mul" else None
        return finished

    def _note_recurrence(self, name: str, values: tuple[Any, ...], result: Any) -> None:
        """Of the first run, what states and decays a recurrence may have."""
        if self._recording and name in _STATES and isinstance(result, torch.Tensor):
            self._memory.note_state(result)
        if self._recording and name == "exp":
            self._memory.note_exponent(values[0])

    def _chosen(self, name: str, function: Any, values: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The operation on float64 values; in some runs another of equal elements is chosen."""
        if name in SELECTING:
            self._memory.chooses = True
            if self._memory.order is not None:
                found = other_choice(function, values, named, self._memory.order.generator)
                if found is not None:
                    return found
        return _LAZY_VIEWS.get(name, function)(*values, **named)

    def _rounded(self, result: Any, dtypes: list[torch.dtype], deviations: list[Any]) -> Any:
        """Wrap fresh results and put noise on them."""
        leaves = iter(zip(dtypes, deviations + [None] * len(dtypes), strict=False))

        def finish(item: Any) -> Any:
            if not is_inexact(item):
                return item
            dtype, deviation = next(leaves)
            value = item.to(wide(dtype))
            return Rounded(self._err(value, dtype, deviation), dtype, self)

        return transform(result, finish)

    def _exact(self, name: str, arguments: tuple[Any, ...], result: Any, dtypes: list[torch.dtype]) -> Any:
        """Wrap results that hold values of their arguments; a conversion to a narrower type rounds."""
        leaves = iter(dtypes)

        def finish(item: Any) -> Any:
            if not is_inexact(item):
                return item
            dtype = next(leaves)
            unordered = getattr(item, UNORDERED, False)
            value = item.to(wide(dtype))
            if name in ("_to_copy", "convert_element_type", "copy"):
                value = self._narrowed(value, arguments[-1 if name == "copy" else 0].dtype, dtype)
            made = Rounded(value, dtype, self)
            made.computed = not arguments or getattr(arguments[0], "computed", True)
            if unordered:
                setattr(made, UNORDERED, True)
            if name in _SAME_VALUES and isinstance(arguments[0], Rounded):
                made.terms = arguments[0].terms
            return made

        return transform(result, finish)

    def _narrowed(self, value: torch.Tensor, source: torch.dtype, dtype: torch.dtype) -> torch.Tensor:
        if source == dtype:
            return value
        value = self._read(value, source)
        exact = (source.is_floating_point or source.is_complex) and unit(dtype) <= unit(source)
        return value if exact or dtype in EIGHT_BITS else self._err(value.clone(), dtype, None)

    def _read(self, value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """What an operation reads of a tensor: of 8 bits, what they hold of a computed value."""
        if dtype not in EIGHT_BITS or self._noise is None:
            return value
        return torch.where(
            value == value.to(dtype).to(value.dtype), value, self._err(value.clone(), dtype, None)
        )

    def _err(self, value: torch.Tensor, dtype: torch.dtype, deviation: torch.Tensor | None) -> torch.Tensor:
        """One random error on a fresh result; infinities and NaN stay what they are."""
        if self._noise is None:
            return where_held(value, dtype) if self._memory.only_exact else value
        shape = _independent(value)
        noise = self._noise.draw(shape)
        if value.is_complex():  # either part is off by units of both
            noise = torch.complex(noise, self._noise.draw(shape))
        rounding = _ROUNDING * unit(dtype)
        if deviation is None and dtype != torch.float16:
            return value.mul_(noise.mul(rounding).add_(1.0))
        size = value.abs().mul_(rounding)
        if deviation is not None:
            size = size.add_(deviation.to(torch.float64), alpha=accumulation_unit(dtype))
        if dtype == torch.float16:
            size = size.add_((value != 0), alpha=_HALF_STEP)
        return value.add_(size.mul(noise).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0))

    def _perturb(self, item: Any, size: float, *, matrices: bool) -> Any:
        """Each element by a part of itself; by one of its matrix's largest element where that is promised."""
        if self._noise is None or not is_inexact(item):
            return item
        noise = self._noise.draw(item.shape).mul(size)
        if not matrices or item.dim() < 2 or not item.numel():
            return item * noise.add_(1.0)
        return item + noise.mul_(item.abs().amax((-2, -1), keepdim=True))

    def _finest(self, arguments: tuple[Any, ...]) -> float:
        return max(
            (accumulation_unit(item.dtype) for item in flat(arguments) if is_inexact(item)), default=0.0
        )

    def _deviations(self, call: Operation, result: Any) -> list[Any]:
        """Units of error of each result before its last rounding: from the first run, if it still fits."""
        name = call.name
        if name not in SUMS and name not in UNITS:
            return []
        position, self._position = self._position, self._position + 1
        shape = tuple(result.shape) if isinstance(result, torch.Tensor) else ()
        key = f"{name}{shape}"
        if not self._recording and position < len(self._memory.deviations):
            known, kept = self._memory.deviations[position]
            if known == key and kept is not None:
                return list(kept)
        rule = SUMS.get(name)
        if rule is None:
            first = next(item for item in flat(result) if is_inexact(item))
            found: Any = UNITS[name](call.arguments, first)
        else:
            found = rule(call, result)
        deviations = [item for item in flat(found) if item is not None]
        if self._recording:
            self._remember(key, deviations)
        return deviations

    def _certain(self, name: str, values: tuple[Any, ...], result: Any) -> Any:
        """NaN instead of what may be rounded, in the run that asks for exact results."""
        if not self._memory.only_exact or never_rounds(name, values, result):
            return result
        return transform(result, lambda item: item * math.nan if is_inexact(item) else item)

    def _decided(self, name: str, values: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        """Operands of a step, without noise where they are exact in every implementation: there is no tie."""
        if not is_step(name, keywords):
            return values
        operands = [item for item in values if is_inexact(item) and not item.is_complex()]
        key = f"{name}{[tuple(item.shape) for item in operands]}"
        position, self._step = self._step, self._step + 1
        if self._memory.only_exact:
            self._memory.decisions.append((key, [item.detach().clone() for item in operands]))
        elif self._noise is None:
            self._memory.steps += bool(operands)
        elif position < len(self._memory.decisions) and self._memory.decisions[position][0] == key:
            known = iter(self._memory.decisions[position][1])
            return tuple(
                without_noise(item, next(known)) if is_inexact(item) and not item.is_complex() else item
                for item in values
            )
        return values

    def _remember(self, key: str, deviations: list[torch.Tensor]) -> None:
        self._memory.bytes += sum(item.numel() * 8 for item in deviations)
        kept = deviations if self._memory.bytes < _REMEMBERED else None
        self._memory.deviations.append((key, kept))

    def _without_floats(self, function: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
        """Integers stay integers; constants are what the user's code sees; integers become floats exactly."""
        integers = any(isinstance(item, torch.Tensor) for item in flat((arguments, keywords)))
        result = function(*arguments, **keywords)
        note_selection(function, arguments, keywords, result)
        dtypes = [item.dtype for item in flat(result) if is_inexact(item)]
        if not dtypes:
            return result
        if not integers or torch.Tag.nondeterministic_seeded in function.tags:
            wrapped = transform(result, lambda item: self.wrap(item) if is_inexact(item) else item)
            return with_sources(wrapped, NO_SOURCES)
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            result = function(*arguments, **{key: wide_dtype(item) for key, item in keywords.items()})
        finally:
            torch.set_default_dtype(before)
        return with_sources(self._rounded(result, dtypes, []), NO_SOURCES)

    def _operand(self, name: str, number: int, arguments: tuple[Any, ...], value: Any) -> Any:
        """An argument of a product, rounded to 16 bits where it comes from what has them.

        So do implementations for tensor cores, whatever the model says between its products; the sums stay in
        float32.
        """
        item = arguments[number]
        if self._noise is None or number not in PRODUCTS.get(name, ()) or not isinstance(item, Rounded):
            return value
        narrow = self._operand_dtype(item, _operand_dtypes(name, arguments))
        if narrow is None or item.dtype == narrow:
            return self._cut_off(value) if item.dtype == torch.float32 else value
        fits = value == value.to(narrow)
        noise = self._noise.draw(value.shape).mul(_ROUNDING * unit(narrow)).add_(1.0)
        return torch.where(fits, value, value * noise)

    def _operand_dtype(self, item: Rounded, both: set[torch.dtype | None]) -> torch.dtype | None:
        """The 16-bit type that an operand of a product may have; `both`: those of its operands.

        Where it comes from wider tensors as well, the other operand must be able to have it too, as values
        are that are multiplied with probabilities; constants may have any.
        """
        if not self._memory.mixed_precision:
            return None
        if item.sources.wide_size == 0:
            return item.sources.narrow
        return next(iter(both)) if len(both) == 1 else None

    def _operand_error(self, call: Operation, sources: ValueSources) -> Callable[[], torch.Tensor] | None:
        """A kernel that scales such a product may scale an operand instead, and round it to 16 bits."""
        noise = self._noise
        if noise is None or not self._memory.mixed_precision or call.name not in ("mm", "bmm"):
            return None
        if sources.operand_dtype is None:
            return None
        size = _ROUNDING * unit(sources.operand_dtype)
        left, right = call.arguments[:2]

        def error() -> torch.Tensor:
            first = torch.matmul(left * noise.draw(left.shape), right)
            return first.add_(torch.matmul(left, right * noise.draw(right.shape))).mul_(size)

        return error

    def _cut_off(self, value: Any) -> Any:
        """To tf32, if allowed: all values get smaller, so that they have part of the error in common."""
        if self._noise is None or not self._memory.tf32_products:
            return value
        together = self._noise.draw(torch.Size(())) * _CUT_TOGETHER
        error = self._noise.draw(value.shape).mul(_CUT_APART).add_(together)
        return torch.where(value == cut_to_tf32(value), value, value * error.mul_(TF32_UNIT).add_(1.0))

    def _narrow_factors(self, call: Operation, operand: Any, deviations: list[Any]) -> list[Any]:
        """Of a sum of products that is computed as a product of matrices: its operands have 16 bits there."""
        factors, narrow = getattr(operand, "factors", None), self._memory.narrow
        if self._noise is None or not self._memory.mixed_precision or factors is None or narrow is None:
            return deviations
        values = call.arguments[0]
        axes = call.arguments[1] if len(call.arguments) > 1 and call.arguments[1] else range(values.dim())
        axes = [axis % values.dim() for axis in axes]
        if not all(factors[values.dim() - 1 - axis] for axis in axes):
            return deviations
        keep = len(call.arguments) > 2 and bool(call.arguments[2])
        units = _ROUNDING * unit(narrow) / unit(torch.float32)
        extra = values.square().sum(axes, keepdim=keep).sqrt_().mul_(units)
        return [torch.hypot(deviations[0], extra), *deviations[1:]]

    def _in_place(self, name: str, function: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
        """Compute out of place, then write the result where it belongs."""
        target = arguments[0] if arguments else None
        if name == "copy_" and isinstance(target, torch.Tensor):
            return self._write(target, arguments[1])
        if torch.Tag.inplace_view in function.tags and isinstance(target, Rounded):
            value = torch.ops.aten.alias(target.value)
            function(value, *arguments[1:], **keywords)
            target.value = value
            with without_dispatch():
                function(*arguments, **keywords)
            return target
        functional = twin_of(name, function)
        if functional is None or not isinstance(target, torch.Tensor):
            values = transform(arguments, lambda item: item.value if isinstance(item, Rounded) else item)
            named = transform(keywords, lambda item: item.value if isinstance(item, Rounded) else item)
            function(*values, **named)
            self._note(name, "changes its arguments directly")
            return keywords.get("out", target)
        # The defaults of an operation in place are not always those of its counterpart.
        rest = schema_of(function).arguments[len(arguments) :]
        defaults = [item.default_value for item in rest if not item.kwarg_only and item.name not in keywords]
        return self._write(target, self.apply(functional, (*arguments, *defaults), keywords))

    def _write(self, target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        value = widen(source)
        if isinstance(target, Rounded):
            if is_inexact(source):
                value = self._narrowed(value, source.dtype, target.dtype)
            target.value.copy_(value)
            whole = isinstance(source, Rounded) and source.shape == target.shape
            target.scale_error = getattr(source, "scale_error", None) if whole else None
        else:
            target.copy_(value)
        return target

    def _nominally(self, function: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
        """Run in the nominal dtypes: random numbers, bit patterns, operations without float64."""
        plain = transform(
            (arguments, keywords),
            lambda item: (
                self._read(item.value, item.dtype).to(item.dtype) if isinstance(item, Rounded) else item
            ),
        )
        result = function(*plain[0], **plain[1])
        return transform(result, lambda item: self.wrap(item) if is_inexact(item) else item)

    def _note(self, name: str, reason: str) -> None:
        if name not in self._memory.unsupported:
            self._memory.unsupported.add(name)
            logger.debug("%s: %s", name, str(reason).partition("\n")[0])


def _transform_deviation(arguments: tuple[Any, ...], result: torch.Tensor) -> torch.Tensor:
    """Of a Fourier transform that is computed as sums, one term after the other, in units of float32.

    A running sum of n terms is off by the root of the sum of its squares: they grow as a random walk
    towards the result. By Parseval the results show how large the terms are.
    """
    axes = [int(axis) % result.dim() for axis in arguments[1]]
    count = math.prod(max(result.shape[axis], widen(arguments[0]).shape[axis]) for axis in axes)
    squares = result.abs().square()
    terms = squares.mean(axes, keepdim=True)
    return squares.div_(9.0).add_(terms / 6.0).mul_(min(count, _LONGEST_TRANSFORM)).sqrt_()


def _added_to_product(arguments: tuple[Any, ...], result: torch.Tensor) -> list[torch.Tensor]:
    """What is added to a product of matrices may be what its sums began with."""
    for product, other in (arguments[:2], arguments[1::-1]):
        if isinstance(product, Rounded) and product.terms:
            value = torch.as_tensor(widen(other), dtype=result.dtype)
            return [started(value, product.terms).expand(result.shape)]
    return []


def _scaled(
    name: str, arguments: tuple[Any, ...], keywords: dict[str, Any], result: Any
) -> tuple[Any, torch.Tensor | None]:
    """A result with its `scale_error`, which it has from its operands or which is put on it here."""
    fresh = _scale_error(name, arguments, result)
    return (result, _carried(name, arguments, keywords, result)) if fresh is None else (result + fresh, fresh)


def _scale_error(name: str, arguments: tuple[Any, ...], result: Any) -> torch.Tensor | None:
    """Of a product of matrices times a number: what rounding a scaled operand changes it by."""
    if name not in ("mul", "div") or len(arguments) < 2:
        return None
    product, number = arguments[:2]
    error = getattr(product, "operand_error", None)
    number = widen(number)
    if error is None or (isinstance(number, torch.Tensor) and number.numel() != 1):
        return None
    change: torch.Tensor = error() * number if name == "mul" else error() / number
    return change.expand(result.shape)


def _carried(
    name: str, arguments: tuple[Any, ...], keywords: dict[str, Any], result: Any
) -> torch.Tensor | None:
    """The `scale_error` of a sum, or of a product with something that has none."""
    errors = [getattr(item, "scale_error", None) for item in arguments[:2]]
    found = [place for place, error in enumerate(errors) if error is not None]
    if not found or name not in ("add", "sub", "mul", "div"):
        return None
    first, second = (
        widen(item) if error is None else error for item, error in zip(arguments, errors, strict=False)
    )
    if name in ("mul", "div"):
        if len(found) == 2 or (name == "div" and found == [1]):
            return None
        scaled: torch.Tensor = first * second if name == "mul" else first / second
        return scaled
    sign = keywords.get("alpha", 1) * (1 if name == "add" else -1)
    parts = (first, second * sign)
    return torch.stack([parts[place].expand(result.shape) for place in found]).sum(0)


def _with_operand_error(
    name: str, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], result: Any
) -> Any:
    """A view or a wider copy of a product."""
    error = getattr(arguments[0], "operand_error", None) if arguments else None
    if error is not None and name in _SAME_VALUES and isinstance(result, Rounded):
        named = {key: wide_dtype(item) for key, item in keywords.items()}
        result.operand_error = lambda: function(error(), *arguments[1:], **named)
    scale_error = getattr(arguments[0], "scale_error", None) if arguments else None
    if scale_error is not None and name in _SAME_VALUES and isinstance(result, Rounded):
        named = {key: wide_dtype(item) for key, item in keywords.items()}
        result.scale_error = function(scale_error, *arguments[1:], **named)
    return result


def _factors(arguments: tuple[Any, ...], narrow: torch.dtype | None) -> tuple[bool, ...] | None:
    """Along which axes both operands vary, from the last one.

    None if one was given in a wider type, and if rounding to the narrow one changes neither.
    """
    for item in arguments[:2]:
        if not isinstance(item, Rounded) or not (item.computed or item.sources.operand_dtype is not None):
            return None
    if narrow is None or all(
        torch.equal(item.value, item.value.to(narrow).double()) for item in arguments[:2]
    ):
        return None
    shapes = [tuple(reversed(item.shape)) for item in arguments[:2]]
    return tuple(all(size > 1 for size in sizes) for sizes in itertools.zip_longest(*shapes, fillvalue=1))


PRODUCTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot", "convolution"), (0, 1)),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), (1, 2)),
}
"""Places of the operands that are multiplied."""


def _operand_dtypes(name: str, arguments: tuple[Any, ...]) -> set[torch.dtype | None]:
    """The 16-bit types that operands of a product come from, None for a wider one; constants have none."""
    operands = (arguments[place] for place in PRODUCTS.get(name, ()))
    sources = [each.sources for each in operands if isinstance(each, Rounded)]
    return {each.operand_dtype for each in sources if each != NO_SOURCES}


def with_sources(result: Any, sources: ValueSources) -> Any:
    """Note in fresh results what they come from."""
    for item in flat(result):
        if isinstance(item, Rounded):
            item.sources = sources
    return result


def note_selection(function: Any, arguments: tuple[Any, ...], keywords: Any, result: Any) -> None:
    """Let indices know what they were chosen from, also after they were reshaped or converted.

    Elements of `unique` that nobody sorts have no order.
    """
    name = operator_name(function).rpartition("::")[2]
    given = (
        dict(zip((each.name for each in schema_of(function).arguments), arguments, strict=False)) | keywords
    )
    operand = given.get("self")
    if not isinstance(operand, torch.Tensor):
        return
    if name == "_unique2" and not given.get("sorted", True) and not given.get("return_inverse", False):
        setattr(result[0], UNORDERED, not given.get("return_counts", False))
    elif name in SELECTING and not given.get("stable"):
        axis = given.get("dim", None if name.startswith("arg") else -1)
        # Of a pair, the values may be integers as well.
        indices = (
            result if name.startswith("arg") else result[1] if isinstance(result, tuple | list) else None
        )
        if isinstance(indices, torch.Tensor):
            any_order = name == "topk" and not given.get("sorted", True)
            chosen = selection_of(operand, axis, indices.shape, running=name in RUNNING, any_order=any_order)
            setattr(indices, SELECTION, chosen)
    elif name in EDGES and given[EDGES[name]].dim() == 1 and given.get("sorter") is None:
        edges = given[EDGES[name]].detach().to(torch.float64)
        values = operand.detach().to(torch.float64)
        chosen = IndexSelection(values=values, axis=0, shape=tuple(result.shape), edges=edges)
        setattr(result, SELECTION, chosen)
    elif name in _SAME_VALUES and isinstance(result, torch.Tensor) and not is_inexact(result):
        kept = [size for size in operand.shape if size != 1] == [size for size in result.shape if size != 1]
        if kept and getattr(operand, SELECTION, None) is not None:
            setattr(result, SELECTION, getattr(operand, SELECTION))


def _independent(value: torch.Tensor) -> torch.Size:
    """Of the errors of a result: rows of one value each are rounded alike, as a whole."""
    shape = value.shape
    if not value.numel() or shape[-1:].numel() < 2 or not bool((value[..., 0] == value[..., -1]).all()):
        return shape
    return torch.Size((*shape[:-1], 1)) if bool((value == value[..., :1]).all()) else shape


_POINTWISE = ELEMENTWISE | frozenset(UNITS) | {"where", "maximum", "minimum", "fmax", "fmin"}


def nominal_dtypes(call: Operation, result: Any, known: dict[Any, list[torch.dtype]]) -> list[torch.dtype]:
    """Dtypes of the floating point results: as asked for, promoted, or from shapes; kept in `known`."""
    results = [item for item in flat(result) if is_inexact(item)]
    if not results:
        return []
    asked = call.keywords.get("dtype")
    if asked is not None and len(results) == 1:
        return [asked]
    leaves = flat((call.arguments, call.keywords))
    given = [item for item in leaves if is_inexact(item)]
    if call.name in _POINTWISE or len({item.dtype for item in given}) == 1:
        promoted = _promoted(given)
        if all(item.dtype == wide(promoted) for item in results):
            return [promoted] * len(results)
    key = (call.function, tuple(_signature(item) for item in leaves))
    if key not in known:
        known[key] = _on_shapes(call, results)
    return known[key]


def _promoted(given: list[torch.Tensor]) -> torch.dtype:
    """The common dtype of elementwise arguments; those without axes count where there are no others."""
    shaped = [item.dtype for item in given if item.dim()] or [item.dtype for item in given]
    return functools.reduce(torch.promote_types, shaped)


def _signature(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return item.dtype, item.dim() == 0
    return item if isinstance(item, bool | torch.dtype) else type(item)


def _on_shapes(call: Operation, results: list[torch.Tensor]) -> list[torch.dtype]:
    """Run on tensors without memory, or, where the operation needs values, in the nominal dtypes."""

    def bare(item: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return torch.empty_strided(item.shape, item.stride(), dtype=item.dtype, device="meta")
        return item

    def nominal(item: Any) -> Any:
        return item.value.to(item.dtype) if isinstance(item, Rounded) else item

    named = {key: item for key, item in call.keywords.items() if key != "device"}
    for convert, keywords in ((bare, named), (nominal, call.keywords)):
        try:
            found = call.function(*transform(call.arguments, convert), **transform(keywords, convert))
        except (RuntimeError, NotImplementedError, TypeError):
            continue
        return [item.dtype for item in flat(found) if is_inexact(item)]
    return [item.dtype for item in results]
