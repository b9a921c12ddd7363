"""Which dtype the user's code would see, where the computation is in float64.

In: an operation on wrappers, and its results. Out: the nominal dtype of each floating point result.
"""

import functools
from typing import Any

import torch

from pipeline.verify.oracle.rounding.elementwise import ELEMENTWISE, UNITS
from pipeline.verify.oracle.rounding.rounded_tensors import Rounded, flat, is_inexact, transform, wide
from pipeline.verify.oracle.rounding.sums import Operation

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
