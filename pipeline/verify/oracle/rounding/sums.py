"""How wrong a sum may be: the error of any usual order of summation, estimated from the terms.

In: a linear operation (sum, product of matrices, convolution, pooling) and its arguments, in float64. Out:
the standard deviation of its error in units of the roundoff it is accumulated in.

Each addition rounds its partial sum S_i, so the error has the variance u^2/6 sum_i S_i^2 (Higham 2002,
section 4.2; mixed signs, so it grows like sqrt(n): Higham and Mary 2019, doi:10.1137/18M1226312). Which
partial sums there are depends on the order. With T the total and Q the sum of squared terms, a random order
has sum_i S_i^2 = n (Q/6 + T^2/3) on average; the order in which the terms stand is looked at itself, since
sorted or drifting data make large partial sums. A part of the magnitude M (sum of absolute terms) covers
short sums and algorithms that combine terms otherwise (Winograd).
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from pipeline.verify.torch_internals import operator_name

Tensor = torch.Tensor


class Operation(NamedTuple):
    """A call of an operator of PyTorch."""

    function: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]

    @property
    def name(self) -> str:
        """`sum`, without namespace and overload."""
        name = operator_name(self.function)
        return name.rpartition("::")[2]


Deviations = Callable[[Operation, Any], Any]
"""An operation on float64 values and its result -> deviations of the shapes of the results."""

_FEW = 8  # values, of a variance that is taken in one pass whatever their mean
_WELFORD = 0.04
_ROUNDING = 0.2
"""Variance of one rounding in squared units: 1/3 for the largest one, less on average."""
_SPLIT = 1.0
"""Variance of the digits that a product of three products of tf32 leaves out, in squared units of float32."""
_SHORT = 32  # terms; longer sums are described by their partial sums
_CHUNKS = 8
_ZERO_POINT = 2.0  # root mean squares of decoded weights that their zero point is away
_CODES = 512  # different values at most that codes have, times the scales of their groups
_FACTORS = (1 / 7, 1 / 3, 0.7, 1.3)  # that change all digits of a term
_SEGMENTED = 0.1  # of sums over columns, the share that begins with another number than 0
_NEARLY_ALL = 0.9  # terms that are equal, or 0: the others change the digits of few partial sums
_SLICES = 8  # products of a batch, and
_SAMPLED = 12  # rows and columns of a product in which drift is looked for
_UNIT = 2.0**-24  # of float32, in which 16-bit types accumulate as well


def _combine(n: float, total: Tensor, squares: Tensor, magnitude: Tensor, path: Tensor | None) -> Tensor:
    order = n * (squares / 6 + total.square() / 3)
    variance = _ROUNDING * (order + (order if path is None else path))
    variance += (0.05 * min(n, _SHORT)) * magnitude.square()
    return variance.sqrt_()


def _combine_products(
    n: float, total: Tensor, squares: Tensor, magnitude: Tensor, path: Tensor | None
) -> Tensor:
    """Each product may be made of three of tf32, which leave out that of the last digits."""
    return torch.hypot(_combine(n, total, squares, magnitude, path), squares.mul(_SPLIT).sqrt_())


def _sum(call: Operation, result: Tensor) -> Tensor:
    values: Tensor = call.arguments[0].to(torch.float64)
    terms, shape, count = _as_rows(call, values, result.shape)
    if call.name == "nansum":
        terms = terms.nan_to_num(nan=0.0)
    path = terms.cumsum(-1).square_().sum(-1).view(shape)
    squares, magnitude = terms.square().sum(-1).view(shape), terms.abs().sum(-1).view(shape)
    deviation = _combine(count, terms.sum(-1).view(shape), squares, magnitude, path)
    deviation = torch.hypot(deviation, _drift(terms).view(shape))
    return deviation / count if call.name == "mean" else deviation


def _as_rows(call: Operation, values: Tensor, shape: torch.Size) -> tuple[Tensor, torch.Size, int]:
    """The terms of each result in one row."""
    given = call.keywords.get("dim", call.arguments[1] if len(call.arguments) > 1 else None)
    given = [given] if isinstance(given, int) else list(given or range(values.dim()))
    axes = [axis % max(values.dim(), 1) for axis in given] if values.dim() else []
    kept = [axis for axis in range(values.dim()) if axis not in axes]
    count = math.prod(values.shape[axis] for axis in axes)
    return values.permute(*kept, *axes).reshape(-1, count), shape, count


def _drift(terms: Tensor) -> Tensor:
    """Half of the error, in units, that float32 makes of the terms from left to right, or from right to left.

    Where few different terms repeat, or small ones meet a large sum, errors have one sign and do not cancel.
    """
    if terms.shape[-1] < 2:
        return terms.new_zeros(terms.shape[:-1], dtype=torch.float64)
    single = terms.to(torch.float32)
    found = torch.maximum(_error_of_running_sum(single), _error_of_running_sum(single.flip(-1)))
    zero = single == 0
    usual = single.masked_fill(zero, math.nan).nanmedian(-1, keepdim=True).values
    equal = (((single == usual) | zero).double().mean(-1) >= _NEARLY_ALL) & (found > 0)
    if bool(equal.any()):  # the drift depends on their digits, and other forms sum multiples of them
        multiples = (_error_of_running_sum(single[equal] * factor) / factor for factor in _FACTORS)
        found[equal] = functools.reduce(torch.maximum, multiples, found[equal])
    return found.mul_(0.5 / _UNIT)


def _error_of_running_sum(single: Tensor) -> Tensor:
    total = single.to(torch.float64).sum(-1)
    error = (_running_sum(single, -1)[..., -1].to(torch.float64) - total).abs_()
    return error.nan_to_num_(nan=0.0, posinf=0.0)


def _running_sum(single: Tensor, axis: int) -> Tensor:
    """One addition after the other in float32; NaN and infinity are what special values ask for."""
    with np.errstate(invalid="ignore", over="ignore"):
        running = np.cumsum(single.cpu().numpy(), axis=axis, dtype=np.float32)
    return torch.from_numpy(running).to(single.device)


def _drift_of_product(left: Tensor, right: Tensor, deviation: Tensor) -> Tensor:
    """By how much, at least 1, sums of products drift further than estimated: on some rows and columns.

    One number for each product of a batch; where these are many, that of a few for all.
    """
    if right.dim() == 1:
        right, deviation = right.unsqueeze(-1), deviation.unsqueeze(-1)
    if left.dim() == 1:
        left, deviation = left.unsqueeze(0), deviation.unsqueeze(-2)
    if not deviation.numel():
        return torch.ones(())
    batch = deviation.shape[:-2]
    left, right = (each.expand(*batch, *each.shape[-2:]) for each in (left, right))
    count = math.prod(batch)
    chosen = np.unique(np.linspace(0, count - 1, min(count, _SLICES)).round().astype(int)).tolist()
    places = [tuple(int(place) for place in np.unravel_index(number, batch)) for number in chosen]
    found = torch.stack([_drift_of_one(left[at], right[at], deviation[at]) for at in places])
    if count > len(chosen):
        return found.amax()
    return found.view(*batch, 1, 1) if batch else found[0]


def _drift_of_one(left: Tensor, right: Tensor, deviation: Tensor) -> Tensor:
    """Of a product of two matrices."""
    rows, columns = (
        torch.linspace(0, size - 1, min(size, _SAMPLED), device=left.device).long()
        for size in (left.shape[0], right.shape[1])
    )
    terms = left[rows].unsqueeze(1) * right[:, columns].t().unsqueeze(0)
    excess = _drift(terms) / deviation[rows][:, columns].clamp(min=1e-300)
    excess = excess[excess.isfinite()]  # rows with NaN say nothing about the others
    return excess.square().mean().sqrt().clamp(min=1.0) if excess.numel() else left.new_ones(())


def multiplications(call: Operation, result: Any) -> float:
    """Of a product of matrices or a convolution; 0 of anything else."""
    if call.name.startswith("convolution"):
        weight = call.arguments[2 if call.name == "convolution_backward" else 1]
        outputs = call.arguments[0] if call.name == "convolution_backward" else result
        return float(outputs.numel() * weight[0].numel())
    if SUMS.get(call.name) is _product:
        added = call.name.startswith(("add", "baddbmm"))
        return float(result.numel() * call.arguments[1 if added else 0].shape[-1])
    return 0.0


def terms_of(call: Operation, result: Any) -> float:
    """How many products are summed into one element of a product of matrices or a convolution; else 0."""
    if call.name == "convolution_backward" or not isinstance(result, Tensor):
        return 0.0
    return multiplications(call, result) / max(result.numel(), 1)


def _cumulative(call: Operation, result: Tensor) -> Tensor:
    values, axis = call.arguments[0].to(torch.float64), call.arguments[1]
    if not values.dim():
        return result.abs()
    shape = [1] * values.dim()
    shape[axis] = -1
    count = torch.arange(1, values.shape[axis] + 1, dtype=torch.float64, device=values.device).view(shape)
    path = result.square().cumsum(axis)
    order = count * (values.square().cumsum(axis) / 6 + result.square() / 3)
    short = 0.05 * count.clamp(max=_SHORT) * values.abs().cumsum(axis).square()
    deviation: Tensor = (_ROUNDING * (order + path) + short).sqrt_()
    single = values.to(torch.float32)
    running = _running_sum(single, axis)
    drift = (running - single.to(torch.float64).cumsum(axis)).abs_().nan_to_num_(nan=0.0, posinf=0.0)
    return _of_segments(values, axis, torch.hypot(deviation, drift * (0.5 / _UNIT)))


def _log_cumulative(call: Operation, result: Tensor) -> Tensor:
    """One `logaddexp` after the other: each rounds what it has so far, and later sums keep a share of it."""
    if not result.dim():
        return result.abs()
    errors = (2 * result + (result.square() + 1).log()).nan_to_num(nan=-math.inf)  # none of what is infinite
    deviation = ((errors.logcumsumexp(call.arguments[1]) - 2 * result) / 2).exp()
    return deviation.nan_to_num(nan=0.0, posinf=0.0).mul_(math.sqrt(_ROUNDING))


def _of_segments(values: Tensor, axis: int, deviation: Tensor) -> Tensor:
    """Sums of segments, zeros before each, are differences of one running sum in recurrences by chunks."""
    axis %= values.dim()
    across = {values.dim() - 1: values.dim() - 2, values.dim() - 2: values.dim() - 1}.get(axis, -1)
    if across < 0 or not values.numel() or (values.select(axis, 0) != 0).double().mean() > _SEGMENTED:
        return deviation
    return deviation.amax(across, keepdim=True).expand(deviation.shape)


def _product(call: Operation, result: Tensor) -> Tensor:
    """mm, bmm, mv, dot; with `add...` the first argument is added."""
    name = call.name
    added = name.startswith(("add", "baddbmm"))
    left, right = call.arguments[1:3] if added else call.arguments[:2]
    count = left.shape[-1]
    alpha = abs(call.keywords.get("alpha", 1)) if added else 1
    deviation = _summed(left, right)
    # Weights are often multiplied as the codes that they were made of, and the zero point is taken off later.
    if _is_decoded(right):
        other = _summed(left, right + _ZERO_POINT * right.square().mean(-2, keepdim=True).sqrt())
        deviation = torch.maximum(deviation, other)
    elif left.dim() > 1 and _is_decoded(left.mT):
        other = _summed(left + _ZERO_POINT * left.square().mean(-1, keepdim=True).sqrt(), right)
        deviation = torch.maximum(deviation, other)
    deviation = deviation * alpha
    if added:
        first = started(call.arguments[0], count) * abs(call.keywords.get("beta", 1))
        deviation = torch.hypot(deviation.expand(result.shape), first.expand(result.shape))
    return deviation.expand(result.shape)


def _summed(left: Tensor, right: Tensor) -> Tensor:
    """Deviations of the sums of a product of matrices."""
    count = left.shape[-1]
    total = torch.matmul(left, right)
    squares, magnitude = torch.matmul(left.square(), right.square()), torch.matmul(left.abs(), right.abs())
    path = _chunks(left, right, count) if count > _SHORT else None
    deviation = _combine_products(count, total, squares, magnitude, path)
    return deviation * _drift_of_product(left, right, deviation)


def _is_decoded(matrix: Tensor) -> bool:
    """Whether the values in its columns are few: those of small codes, times the scales of some groups."""
    if matrix.dim() < 2 or matrix.shape[-2] < _SHORT or not matrix.numel() or matrix.is_complex():
        return False
    while matrix.dim() > 2:
        matrix = matrix[0]
    columns = torch.linspace(0, matrix.shape[1] - 1, min(matrix.shape[1], 4), device=matrix.device).long()
    for column in columns:
        values = matrix[:, column][matrix[:, column] != 0]  # zeros may be what a rectifier or a mask left
        different = torch.unique(values).numel()
        if values.numel() < _SHORT or not 1 < different <= min(values.numel() / 2, _CODES):
            return False
    return True


def started(value: Tensor, terms: float) -> Tensor:
    """Deviations of sums that begin with a value, a bias for example: every addition rounds it again."""
    return torch.abs(value) * math.sqrt(_ROUNDING * terms + 0.25)


def _chunks(left: Tensor, right: Tensor, count: int) -> Tensor:
    """Sum of squared partial sums in the order in which the terms stand."""
    step = -(-count // _CHUNKS)
    partial: Tensor | None = None
    path: Tensor | None = None
    for start in range(0, count, step):
        rows = right[start : start + step] if right.dim() == 1 else right[..., start : start + step, :]
        more = torch.matmul(left[..., start : start + step], rows)
        partial = more if partial is None else partial + more
        path = partial.square() if path is None else path.add_(partial.square())
    assert path is not None
    return path.mul_(step)


def _convolution(call: Operation, _result: Tensor) -> Tensor:
    weight: Tensor = call.arguments[1]
    transposed, groups = call.arguments[6], call.arguments[8]
    per_group = weight.shape[0] // groups if transposed else weight.shape[1]
    count = per_group * math.prod(weight.shape[2:])
    rest = call.arguments[3:]
    bias = call.arguments[2]
    total = call.function(*call.arguments[:2], None, *rest)
    squares = call.function(call.arguments[0].square(), weight.square(), None, *rest)
    magnitude = call.function(call.arguments[0].abs(), weight.abs(), None, *rest)
    deviation = _combine_products(count, total, squares, magnitude, None)
    if bias is None:
        return deviation
    channels = started(bias, count).view(-1, *(1,) * (weight.dim() - 2))
    return torch.hypot(deviation, channels.expand(deviation.shape))


def _convolution_backward(call: Operation, result: Any) -> tuple[Tensor | None, ...]:
    gradient, values, weight = call.arguments[:3]
    transposed, groups = call.arguments[7], call.arguments[9]
    kernel = math.prod(weight.shape[2:])
    channels = weight.shape[1] if transposed else weight.shape[0] // groups
    places = gradient.shape[0] * math.prod(gradient.shape[2:])
    counts = (channels * kernel, places, places)
    squares = call.function(gradient.square(), values.square(), weight.square(), *call.arguments[3:])
    magnitudes = call.function(gradient.abs(), values.abs(), weight.abs(), *call.arguments[3:])
    return tuple(
        None if total is None else _combine_products(count, total, square, magnitude, None)
        for count, total, square, magnitude in zip(counts, result, squares, magnitudes, strict=True)
    )


def _scattered(call: Operation, result: Any) -> Tensor:
    """As many equal terms may fall on one place: then rounding errors have one sign and do not cancel."""
    return torch.hypot(_by_magnitude(call, result), _drift_of_scattered(call, result, torch.float32) / _UNIT)


def _scattered_parts(call: Operation, result: Tensor, dtype: torch.dtype) -> Tensor:
    """In 16 bits, as the atomic operations of a device add them, PyTorch's among them, in any order."""
    drift = _drift_of_scattered(call, result, dtype) / (float(torch.finfo(dtype).eps) / 2)
    if call.name not in _ADDED or (call.name == "scatter_reduce" and "sum" not in call.arguments):
        return drift
    squares, counts = (_scattered_alike(call, change) for change in (torch.square, torch.ones_like))
    # What k of n terms add up to: of random signs k/n of the squares, of one sign k/n of the sum.
    variance = _ROUNDING * (squares * (counts + 1) / 2 + result.square() * counts / 3)
    return torch.hypot(drift, torch.where(counts > 1, variance.sqrt(), 0.0))


def _scattered_alike(call: Operation, change: Callable[[Tensor], Tensor]) -> Tensor:
    """The same terms, changed, to the same places."""
    arguments = list(call.arguments)
    for number in {_ADDED[call.name], 0}:
        arguments[number] = change(arguments[number])
    found: Tensor = call.function(*arguments, **call.keywords)
    return found


def _drift_of_scattered(call: Operation, result: Any, dtype: torch.dtype) -> Tensor:
    """Half of the error that a type makes of the sums, in the order of the terms or backwards."""
    found = torch.zeros_like(result)
    backwards = {number: call.arguments[number].flip(axis) for number, axis in _source_axes(call).items()}
    for changed in ({}, backwards) if backwards else ({},):
        given = (changed.get(number, item) for number, item in enumerate(call.arguments))
        try:
            narrow = call.function(*(_narrow(item, dtype) for item in given), **call.keywords)
        except (RuntimeError, TypeError):
            continue
        found = torch.maximum(found, (narrow.to(torch.float64) - result).abs())
    return found.nan_to_num_(nan=0.0, posinf=0.0).mul_(0.5)


def _narrow(item: Any, dtype: torch.dtype) -> Any:
    return item.to(dtype) if isinstance(item, Tensor) and item.is_floating_point() else item


def _source_axes(call: Operation) -> dict[int, int]:
    """Of the arguments that hold terms or their places: the axis along which the terms are added."""
    if call.name == "bincount":
        return {number: 0 for number, item in enumerate(call.arguments[:2]) if isinstance(item, Tensor)}
    if call.name not in ("index_add", "index_reduce", "scatter_add", "scatter_reduce"):
        return {}
    places, terms = call.arguments[2:4]
    if not (isinstance(terms, Tensor) and terms.dim() and places.dim()):
        return {}
    axis = int(call.arguments[1]) % terms.dim()
    return {2: axis if call.name.startswith("scatter") else 0, 3: axis}


_ADDED = {
    "index_add": 3, "scatter_add": 3, "scatter_reduce": 3, "index_put": 2, "_index_put_impl": 2,
    "_unsafe_index_put": 2, "embedding_dense_backward": 0,
}  # fmt: skip
"""The argument that holds the terms."""
_SCATTERED = (
    "index_add", "scatter_add", "scatter_reduce", "index_reduce", "bincount", "index_put", "_index_put_impl",
    "_unsafe_index_put", "embedding_dense_backward",
)  # fmt: skip


def _by_magnitude(call: Operation, _result: Any) -> Tensor:
    """Any other linear operation: on absolute values, for as many terms as inputs fall on an output."""
    positive = tuple(
        item.abs() if isinstance(item, Tensor) and item.is_floating_point() else item
        for item in call.arguments
    )
    largest = max((item.numel() for item in call.arguments if isinstance(item, Tensor)), default=1)
    magnitude = call.function(*positive, **call.keywords)
    magnitude = magnitude[0] if isinstance(magnitude, tuple) else magnitude
    terms = min(max(largest / max(magnitude.numel(), 1), 4.0), 256.0)
    return torch.abs(magnitude) * (0.5 * math.sqrt(terms))


_POOLS = """
    avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d
    avg_pool2d_backward avg_pool3d_backward _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward
    upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_nearest2d_backward
    upsample_bilinear2d_backward
    _upsample_bilinear2d_aa upsample_nearest1d_backward upsample_nearest3d_backward _embedding_bag
    _embedding_bag_forward_only max_pool2d_with_indices_backward max_pool3d_with_indices_backward
    adaptive_max_pool2d_backward col2im unfold_backward trace as_strided_scatter reflection_pad2d_backward
    reflection_pad1d_backward replication_pad2d_backward
"""

SUMS: dict[str, Deviations] = (
    dict.fromkeys(_POOLS.split(), _by_magnitude)
    | dict.fromkeys(_SCATTERED, _scattered)
    | dict.fromkeys(("sum", "mean", "nansum"), _sum)
    | dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot", "addmm", "baddbmm", "addmv"), _product)
    | {"cumsum": _cumulative, "logcumsumexp": _log_cumulative}
    | {"convolution": _convolution, "convolution_backward": _convolution_backward}
)


def _spread(call: Operation, result: Any) -> Any:
    """var, std, also with the mean: in two passes, or in one where the mean is not much larger.

    Of a few values the mean is much larger now and then, whatever they are drawn from.
    """
    name = call.name
    first = result[0] if isinstance(result, tuple) else result
    values = call.arguments[0].to(torch.float64)
    rows, shape, count = _as_rows(call, values, first.shape)
    mean, variance = rows.mean(-1).view(shape), rows.var(-1, correction=0).view(shape)
    one_pass = mean.square() if count <= _FEW else torch.minimum(mean.square(), 16 * variance)
    units = variance + one_pass + 16 * _UNIT * mean.square()
    units *= math.sqrt(1.0 + 0.13 * count)
    # Welford's update and merge (Chan, Golub & LeVeque 1983) are off by count * condition units at worst.
    units = units + _WELFORD * count * (variance.sqrt() * (variance + mean.square()).sqrt() - variance)
    # One sum is of squares around the mean, or of squares themselves; the mean's error enters squared.
    centered = _drift((rows - rows.mean(-1, keepdim=True)).square()).view(shape) / max(count, 1)
    plain = _drift(rows.square()).view(shape) / max(count, 1)
    units = units + torch.where(mean.square() < 16 * variance, torch.maximum(centered, plain), centered)
    if name.startswith("std"):
        units = ((first.square() + units * _UNIT).sqrt() - first.abs()) / _UNIT
    if not isinstance(result, tuple):
        return units
    return units, _rows_mean(rows, count).view(shape)


def _rows_mean(rows: Tensor, count: int) -> Tensor:
    path = rows.cumsum(-1).square_().sum(-1)
    return _combine(count, rows.sum(-1), rows.square().sum(-1), rows.abs().sum(-1), path) / count


def _factors(call: Operation, result: Tensor, _dtype: torch.dtype | None = None) -> Tensor:
    """prod: every multiplication rounds."""
    count = call.arguments[0].numel() / max(result.numel(), 1)
    return result.abs() * (0.6 * math.sqrt(count))


def _taps(call: Operation, result: Tensor, _dtype: torch.dtype) -> Tensor:
    """A transposed convolution adds what each tap gives, from memory in which that was stored in 16 bits."""
    if not call.arguments[6]:
        return torch.zeros_like(result)
    taps = math.prod(call.arguments[1].shape[2:])
    squares: Tensor = call.function(
        call.arguments[0].square(), call.arguments[1].square(), None, *call.arguments[3:]
    )
    deviation: Tensor = (0.3 * (squares + taps * (squares / 6 + result.square() / 3))).sqrt_()
    return deviation


PARTS: dict[str, Callable[[Operation, Tensor, torch.dtype], Tensor]] = {
    "prod": _factors,
    "convolution": _taps,
    **dict.fromkeys(_SCATTERED, _scattered_parts),
}
"""What rounds to the nominal type on the way, where that has 16 bits; in its units."""


def _paths(call: Operation, result: Any) -> Any:
    """ctc_loss: logarithms of sums, from step to step, that grow up to the result; each step rounds twice."""
    steps = call.arguments[0].shape[0]
    return (result[0].abs() * (0.3 * math.sqrt(2 * steps / 3)),)


SUMS |= {"_ctc_loss": _paths}
SUMS |= dict.fromkeys(("var", "std", "var_mean", "std_mean"), _spread) | {"prod": _factors}
