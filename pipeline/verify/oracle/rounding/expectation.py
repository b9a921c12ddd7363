"""Expected values of any PyTorch function, and how far rounding alone may lead away from them.

In: a function (a `Model`'s forward) and its arguments. Out: per output an `Expected`: the float64
reference, a bound per element, and the spread of rounding errors for a criterion over all elements.

The function runs in float64 several times; in each run every operation gets a random error of the size that
its nominal type, its length of reduction and its magnitudes allow (`arithmetic`). The spread of the results
is the standard deviation of a right implementation's error; its bound is `_FACTOR` times that, plus the last
rounding.
"""

import functools
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import torch

from pipeline.records.errors import KernelmillError
from pipeline.verify.oracle.rounding.arithmetic import SELECTION, UNORDERED
from pipeline.verify.oracle.rounding.rounded_tensors import (
    EIGHT_BITS,
    NARROW,
    ChoiceOrder,
    Noise,
    OperationMemory,
    accumulation_unit,
    is_inexact,
    unit,
    widen,
)
from pipeline.verify.oracle.rounding.wrapped_run import (
    Function,
    WrappedRun,
    whole_run,
    with_narrow_attributes,
)
from pipeline.verify.oracle.selection import IndexSelection
from pipeline.verify.oracle.tolerance import Expected, scale_errors, tiny

logger = logging.getLogger(__name__)

SAMPLES = 12
_FEWEST = 8
_WORK = 5e7  # elements; beyond it there are fewer samples
_CONSECUTIVE = 2.0**53  # float64 has all integers below
_FACTOR = 8.0
"""Errors of mixed signs do not reach 8 standard deviations by chance."""
_OVERALL = 2.5
"""How many standard deviations the root mean square over many independent elements may reach."""
_ORDERS = 3  # random ones, of what is chosen from
_STEPS = 2.0
"""Times what float32 in place of Python's numbers changes, that the bound is at least."""
_FEW_OPERATIONS = 64  # that round more than their last digit
_MOST_REORDERED = 128.0
_MOST_DECAYED = 512.0
_CHUNK = 64  # steps that are customary in one
_UNITS_OF_SUM = 2.0
_NARROW_UNITS = 12.0
_OWN = 1 / 3
"""Of these units, the part that is relative to the element itself: its state is rounded in each chunk."""
_SHARED = 0.25
"""Of what sums may differ by after reordering, the part that follows the states and not the row."""
_SHORTEST_ROW = 16
_ROW_FACTOR = 16.0
"""What a row has in common is rounded once, with an error that no mean over its elements makes smaller."""
_STORED_ONCE = 1.05
"""Units of the output's type that one rounding of a row's statistic changes the row by."""
_MEAN_OF_ROUNDINGS = 1.5
"""Units, over the root of how many values make up a row: the mean of a rounding of each."""
_ROW_UNITS = 8.0
"""Of float32: a quick reciprocal, root or exponential is off by as much for a whole row."""
_MANY = 256  # elements, for what is said about all of them together
_ON_ONE_SIDE = 0.3  # units by which all elements may be off together; cut off, they are by about 0.7
_NEIGHBOURS = 9  # elements of a row whose spreads smooth the one between them


class _Chunked(NamedTuple):
    """What forms that are equal in algebra may differ by, relative to a typical value.

    The steps of a recurrence are done in chunks, by products of matrices and triangular solves, whose errors
    follow none of the steps.
    """

    reordered: float = 1.0
    """Roundings of what sums are accumulated in."""
    narrow: float = 0.0
    """Of inputs with 16 bits: products of chunks take their operands, states among them, in that type."""
    states: Mapping[tuple[int, ...], float] = MappingProxyType({})
    """Shape -> the largest that states of this shape were, as a root mean square."""


class Allowance:
    """What a right implementation of one function may do otherwise; shared by its calls on several sizes."""

    def __init__(self, *, mixed_precision: bool = True, tf32_products: bool = False) -> None:
        self.mixed_precision = mixed_precision
        """Where all that a product's operand comes from has 16 bits, it may be rounded to them."""
        self.tf32_products = tf32_products
        """A product's operand of float32 may be cut off to tf32."""
        self.longest = 0
        """Operations of the longest run so far that round more than their last digit.

        A recurrence is one on inputs of few steps as well.
        """


def _chunked(memory: OperationMemory, allowance: Allowance) -> _Chunked:
    operations = len(memory.deviations)
    allowance.longest = max(allowance.longest, operations)
    if allowance.longest <= _FEW_OPERATIONS:
        return _Chunked()
    narrow = _NARROW_UNITS * unit(memory.narrow) if memory.mixed_precision and memory.narrow else 0.0
    reordered = min(max(operations / 4, 1.0), _MOST_REORDERED)
    # Decays of a chunk are exponentials of differences of their running sum, off by some units of that sum.
    decayed = min(_UNITS_OF_SUM * _CHUNK * memory.exponent, _MOST_DECAYED)
    return _Chunked(reordered + decayed, narrow, memory.states)


class RandomReference(KernelmillError):
    """The function draws random numbers, so that no answer is the right one."""


def expectation(
    function: Function,
    arguments: Sequence[Any],
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    allowance: Allowance | None = None,
) -> tuple[Expected, ...]:
    """Expected values of every tensor that `function(*arguments)` returns, in order.

    Nested tuples, lists and dicts are flattened, numbers are tensors without axes, anything else is left out.

    Raises
    ------
    RandomReference
        Two equal calls return different values.
    """

    def on_wrappers(memory: OperationMemory, noise: Noise | None) -> list[torch.Tensor]:
        return WrappedRun(function, arguments, (memory, noise)).tensors

    def with_single_precision_numbers(memory: OperationMemory) -> list[torch.Tensor] | None:
        narrowed = with_narrow_attributes(function)
        return None if narrowed is None else WrappedRun(narrowed, arguments, (memory, None)).tensors

    def as_a_whole(memory: OperationMemory, noise: Noise | None) -> list[torch.Tensor]:
        return whole_run(function, arguments, memory, noise)

    try:
        return sampled(
            on_wrappers,
            samples=samples,
            seed=seed,
            allowance=allowance,
            narrowed=with_single_precision_numbers,
        )
    except RandomReference:
        raise
    except Exception as error:
        # Whatever it was: if the function itself is at fault, it raises again.
        reason = str(error).partition("\n")[0]
        logger.info("analysed as a whole, not operation by operation: %s: %s", type(error).__name__, reason)
        return sampled(as_a_whole, samples=samples, seed=seed, allowance=allowance)


def sampled(
    call: Any,
    *,
    samples: int,
    seed: int,
    allowance: Allowance | None = None,
    narrowed: Callable[[OperationMemory], list[torch.Tensor] | None] | None = None,
) -> tuple[Expected, ...]:
    """Expected values of the tensors that `call(memory, noise)` returns.

    `narrowed`: the same from numbers that a kernel gets in float32; None where there are none.

    Raises
    ------
    RandomReference
        Two equal calls return different values.
    """
    with torch.random.fork_rng(devices=[]):
        allowance = allowance or Allowance()
        memory = OperationMemory()
        memory.mixed_precision = allowance.mixed_precision
        memory.tf32_products = allowance.tf32_products
        nominal = call(memory, None)
        selections = [getattr(item, SELECTION, None) for item in nominal]
        references = [_values(item) for item in nominal]
        work, chunked = memory.work, _chunked(memory, allowance)
        again = [_values(item) for item in call(memory, None)]
        if not _equal(references, again):
            raise RandomReference("two equal calls return different values: no answer is the right one")
        _decide_steps(call, memory)
        steps = _with_choices(call, memory, references, _steps(narrowed, memory, references), seed)
        count = max(min(samples, int(_WORK * samples / max(work, 1.0))), min(samples, _FEWEST))
        noise = Noise(seed)
        squares: list[torch.Tensor | None] = [None] * len(nominal)
        runs = []
        for _ in range(count):
            found = call(memory, noise)
            runs.append(_departures(found, references))
            squares = [_selected_from(*each) for each in zip(squares, selections, found, strict=False)]
    return tuple(
        msgspec.structs.replace(
            _expected(
                tensor,
                reference,
                [item for run in runs if (item := run[number]) is not None],
                chunked,
                step=steps[number],
                stored=_STORED_ONCE * (2.0 if memory.equal_rows else 1.0),
            ),
            selection=_bounded(selections[number], squares[number], count),
            unordered=bool(getattr(tensor, UNORDERED, False)),
        )
        for number, (tensor, reference) in enumerate(zip(nominal, references, strict=True))
    )


def _steps(
    narrowed: Callable[[OperationMemory], list[torch.Tensor] | None] | None,
    memory: OperationMemory,
    references: list[torch.Tensor],
) -> list[torch.Tensor | None]:
    """How far float32 in place of Python's numbers leads; None where it cannot be said, or leads nowhere."""
    try:
        found = None if narrowed is None else narrowed(memory)
    except Exception as error:  # sizes may be made from such numbers
        logger.info("not called with numbers of float32: %s", error)
        found = None
    if found is None or len(found) != len(references):
        return [None] * len(references)
    steps = _departures(found, references)
    return [step if step is not None and step.is_floating_point() else None for step in steps]


def _with_choices(
    call: Any,
    memory: OperationMemory,
    references: list[torch.Tensor],
    steps: list[torch.Tensor | None],
    seed: int,
) -> list[torch.Tensor | None]:
    """With how far the choice of another of equal elements leads, as `topk` leaves it open."""
    if not memory.chooses:
        return steps
    orders = (None, *[torch.Generator().manual_seed(seed + number) for number in range(_ORDERS)])
    for generator in orders:
        memory.order = ChoiceOrder(generator)
        try:
            found = _departures(call(memory, None), references)
        finally:
            memory.order = None
        moved = [each is not None and each.is_floating_point() and bool(each.any()) for each in found]
        if not any(moved):
            break  # nothing depends on it
        for number, departure in enumerate(found):
            if moved[number] and departure is not None:
                step = steps[number]
                steps[number] = (
                    departure.abs() if step is None else torch.maximum(step.abs(), departure.abs())
                )
    return steps


def _decide_steps(call: Any, memory: OperationMemory) -> None:
    """Find out which operands of steps are exact, if there are any steps."""
    if not memory.steps:
        return
    memory.only_exact = True
    try:
        call(memory, None)
    except Exception as error:  # sizes may be made from such numbers
        logger.info("not called with what is exact alone: %s", error)
        memory.decisions.clear()
    finally:
        memory.only_exact = False


def _selected_from(
    squares: torch.Tensor | None, nominal: IndexSelection | None, found: torch.Tensor
) -> torch.Tensor | None:
    """Sum of squared departures of what indices were chosen from."""
    other: IndexSelection | None = getattr(found, SELECTION, None)
    if nominal is None or other is None or other.values.shape != nominal.values.shape:
        return squares
    departure = (other.values - nominal.values).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0).square_()
    return departure if squares is None else squares.add_(departure)


def _bounded(
    selection: IndexSelection | None, squares: torch.Tensor | None, count: int
) -> IndexSelection | None:
    if selection is None or squares is None or not bool(squares.any()):
        return selection
    bound = squares.div_(max(count, 1)).sqrt_().mul_(_FACTOR)
    return msgspec.structs.replace(selection, bound=bound)


def declared(expected: Expected, *, rtol: float, atol: float, reason: str) -> Expected:
    """Widen a bound to `atol + rtol |reference|` where that is larger, as its author documents.

    Outputs of integers stay exact.

    Raises
    ------
    ValueError
        No reason is given, or a tolerance is negative or not finite.
    """
    if not reason.strip():
        raise ValueError("a declared tolerance needs its reason")
    if not (math.isfinite(rtol) and math.isfinite(atol) and rtol >= 0 and atol >= 0):
        raise ValueError(f"declared tolerance: expected finite numbers >= 0, got rtol={rtol}, atol={atol}")
    if expected.spread is None:
        return expected
    wider = torch.nan_to_num(expected.reference.abs(), nan=0.0, posinf=0.0).mul_(rtol).add_(atol)
    bound = torch.maximum(expected.bound, wider)
    plain = bool((expected.reference.abs() + bound < torch.finfo(getattr(torch, expected.dtype)).max).all())
    # What is declared is a bound for each element, so that the criterion over all of them gives way with it.
    spread = torch.maximum(expected.spread, wider / expected.limit)
    return Expected(
        dtype=expected.dtype,
        reference=expected.reference,
        bound=bound,
        plain=plain,
        spread=spread,
        limit=expected.limit,
        before_rounding=expected.before_rounding,
    )


def _values(tensor: torch.Tensor) -> torch.Tensor:
    value: torch.Tensor = widen(tensor).detach()
    scale_error = getattr(tensor, "scale_error", None)
    if scale_error is not None and tensor.dtype not in NARROW:
        # Scaled operands are rounded for what scores go on to; who wants a product in float32 gets it so.
        value = value - scale_error
    return torch.view_as_real(value).contiguous() if value.is_complex() else value.contiguous()


def _equal(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return len(first) == len(second) and all(
        one.shape == other.shape and torch.equal(one.nan_to_num(nan=1.5e300), other.nan_to_num(nan=1.5e300))
        for one, other in zip(first, second, strict=True)
    )


def _departures(found: list[torch.Tensor], references: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """Of one run: how far floating point results are from the reference (float32), other integer results.

    None where the run says nothing: equal integers, or another shape.
    """
    departures: list[torch.Tensor | None] = []
    for tensor, reference in zip(found, references, strict=True):
        value = _values(tensor)
        if value.shape != reference.shape:
            departures.append(None)
        elif is_inexact(tensor):
            # A difference that is not finite says nothing either.
            difference = (value - reference).nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
            departures.append(difference.to(torch.float32))
        else:
            departures.append(None if torch.equal(value, reference) else value)
    return departures


def _expected(  # noqa: PLR0913  (each is something else)
    tensor: torch.Tensor,
    reference: torch.Tensor,
    deviations: list[torch.Tensor],
    chunked: _Chunked,
    *,
    step: torch.Tensor | None,
    stored: float,
) -> Expected:
    """`stored`: units of a 16-bit output that what is stored on the way changes a whole row by."""
    if not is_inexact(tensor):
        return _exactly(tensor.dtype, reference, deviations)
    dtype = tensor.dtype.to_real() if tensor.is_complex() else tensor.dtype
    size = torch.where(reference.isfinite(), reference.abs(), 0.0)
    floor = accumulation_unit(dtype) * chunked.reordered * _scale(size)
    if chunked != _Chunked() and size.numel():
        # States are what rows have in common: one that cancels is off by as much as the others, and one that
        # is small at the end by as much as it was rounded while it was large.
        shared = max(chunked.narrow, _SHARED * chunked.reordered * accumulation_unit(dtype))
        state = chunked.states.get(tuple(reference.shape), 0.0)
        floor = floor.clamp_(min=shared * max(float(size.square().mean().sqrt()), state))
        floor = torch.maximum(floor, size * (_OWN * chunked.narrow))
    if dtype in EIGHT_BITS:
        return _before_rounding(dtype, reference, deviations, floor, step=step)
    variance = torch.zeros_like(reference)
    for deviation in deviations:
        variance.add_(deviation.double().square_())
    spread = _smooth(variance.div_(max(len(deviations), 1)), len(deviations)).sqrt_()
    bound = spread.mul(_FACTOR).add_(size, alpha=unit(dtype)).add_(floor).add_(tiny(dtype))
    if step is not None:
        step = step.double().abs_()
        bound.add_(step, alpha=_STEPS)
        spread.add_(step)
    spread = spread.add_(size, alpha=0.3 * unit(dtype)).add_(floor, alpha=0.3).add_(tiny(dtype))
    plain = bool((reference.abs() + bound < torch.finfo(dtype).max).all())
    return Expected(
        dtype=str(dtype).removeprefix("torch."),
        reference=reference,
        bound=bound,
        plain=plain,
        spread=spread,
        limit=_limit(deviations, spread),
        row_limit=_row_limit(deviations, reference, dtype, chunked, stored=stored),
        scale_limit=_scale_limit(deviations, reference, dtype, chunked, stored=stored),
    )


def _before_rounding(
    dtype: torch.dtype,
    reference: torch.Tensor,
    deviations: list[torch.Tensor],
    floor: torch.Tensor,
    *,
    step: torch.Tensor | None,
) -> Expected:
    """Of an output of 8 bits: the bound of what is rounded to them, nearly none of what was only copied."""
    squares = [item.double().square_() for item in deviations]
    variance = functools.reduce(torch.add, squares, torch.zeros_like(reference)) / max(len(squares), 1)
    least = tiny(torch.float32)
    if not bool(variance.any()) and step is None:
        bound = torch.full_like(reference, least)
    else:
        bound = _smooth(variance, len(squares)).sqrt_().mul_(_FACTOR).add_(floor).add_(least)
        bound = bound if step is None else bound.add_(step.double().abs(), alpha=_STEPS)
    return Expected(
        dtype=str(dtype).removeprefix("torch."),
        reference=reference,
        bound=bound,
        plain=bool((reference.abs() + bound < torch.finfo(dtype).max).all()),
        spread=bound / _FACTOR,
        before_rounding=True,
    )


def _scale_limit(
    deviations: list[torch.Tensor],
    reference: torch.Tensor,
    dtype: torch.dtype,
    chunked: _Chunked,
    *,
    stored: float,
) -> float:
    """Roundings to nearest cancel out over many different values; cutting off makes all of them smaller."""
    narrow = unit(dtype) > unit(torch.float32)
    if not narrow or len(deviations) < 2 or reference.numel() < _MANY or chunked != _Chunked():
        return math.inf
    rows = reference.reshape(-1)
    factors = torch.stack([scale_errors(item.double().reshape(-1), rows) for item in deviations])
    values, counts = rows.nan_to_num(0.0, 0.0, 0.0).abs().float().double().unique(return_counts=True)  # type: ignore[no-untyped-call]
    weights = counts * values.square()
    concentration = float(weights.square().sum().sqrt() / weights.sum().clamp(min=1e-300))
    shares = unit(dtype) * (_ON_ONE_SIDE + _MEAN_OF_ROUNDINGS * concentration)
    if stored > _STORED_ONCE:
        shares += unit(dtype) * stored / math.sqrt(reference.numel() / reference.shape[-1])
    return _ROW_FACTOR * float(factors.square().mean().sqrt()) + shares


def _row_limit(
    deviations: list[torch.Tensor],
    reference: torch.Tensor,
    dtype: torch.dtype,
    chunked: _Chunked,
    *,
    stored: float,
) -> torch.Tensor | None:
    # In float32, what a row has in common (the first sums of a scan) is as large as its elements' own errors.
    if dtype not in (torch.float16, torch.bfloat16) or len(deviations) < 2:
        return None
    if not reference.dim() or reference.shape[-1] < _SHORTEST_ROW:
        return None
    factors = torch.stack([scale_errors(item.double(), reference) for item in deviations])
    variance = factors.square().mean(0)
    variance = torch.maximum(variance, variance.mean())
    reordered = max(chunked.reordered * accumulation_unit(dtype), 0.25 * chunked.narrow)
    limit = variance.sqrt_().mul_(_ROW_FACTOR).add_(_ROW_UNITS * reordered)
    # A statistic may be stored in the output's type once; sums in that type are off by more. What is made of
    # equal values may be stored once more, and is rounded alike.
    shares = stored + _MEAN_OF_ROUNDINGS * _concentration(reference, dtype)
    return torch.maximum(limit, unit(dtype) * shares)


def _concentration(reference: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """1 over the root of the number of values that a row's scale comes from: equal ones are rounded alike."""
    largest = torch.finfo(dtype).max  # of what overflows, too: infinities have no shares
    size = reference.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().clamp_(max=largest).to(dtype)
    ordered, _ = size.view(torch.int16).sort(-1)  # as the values are: all are positive
    ordered = ordered.view(dtype).double()
    ordered /= ordered[..., -1:].clamp(min=1e-300)
    groups = ordered.diff(dim=-1, prepend=ordered[..., :1]).ne_(0.0).long().cumsum(-1)
    weights = torch.zeros_like(ordered).scatter_add_(-1, groups, ordered.square_())
    return weights.square().sum(-1).sqrt_() / weights.sum(-1).clamp_(min=1.0)


def _exactly(dtype: torch.dtype, reference: torch.Tensor, others: list[torch.Tensor]) -> Expected:
    """Integers must be equal, or equal to what a perturbed run gave at the same place."""
    values = reference.to(torch.float64)
    large = reference.dtype == torch.int64 and bool((values.abs() >= _CONSECUTIVE).any())
    return Expected(
        dtype=str(dtype).removeprefix("torch."),
        reference=values,
        bound=torch.full_like(values, 0.5),
        plain=True,
        accepted=tuple(item.to(torch.float64) for item in others),
        integers=(reference, *others) if large else (),
    )


def _scale(size: torch.Tensor) -> torch.Tensor:
    """Root mean square of a row."""
    return size.square().mean(-1, keepdim=True).sqrt_() if size.dim() and size.numel() else size


def _smooth(variance: torch.Tensor, samples: int) -> torch.Tensor:
    """Raise what came out small by chance towards its neighbours' mean, as far as chance may have led."""
    if not variance.dim() or variance.shape[-1] < 2 or not variance.numel():
        return variance
    rows = variance.reshape(-1, 1, variance.shape[-1])
    around = torch.nn.functional.avg_pool1d(
        rows, _NEIGHBOURS, stride=1, padding=_NEIGHBOURS // 2, count_include_pad=False
    ).view(variance.shape)
    return torch.maximum(variance, torch.minimum(around, _unlucky(samples) * variance))


def _unlucky(samples: int) -> float:
    """A quarter over the share of its mean that a sampled variance falls below once in 1e7 (chi squared)."""
    half = max(samples, 2) / 2
    share: float = (1e-7 * 2**half * math.gamma(half + 1)) ** (1 / half) / (2 * half)
    return max(0.25 / share, 1.0)


def _limit(deviations: list[torch.Tensor], spread: torch.Tensor) -> float:
    """What the root mean square of error / spread may reach: more where few errors are independent."""
    if not spread.numel() or len(deviations) < 2:
        return _FACTOR
    squares = torch.tensor([float((item / spread).square_().mean()) for item in deviations])
    variation = float(squares.std() / squares.mean().clamp(min=1e-30))
    return min(_OVERALL * math.sqrt(1.0 + 6.0 * variation), _FACTOR)
