"""Calls a function on wrapped arguments, each time with fresh state: its parameters, buffers and attributes.

In: a callable (a `torch.nn.Module` or anything else) and its arguments. Out: its outputs as `Rounded`
tensors, flattened.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from pipeline.verify.oracle.rounding.arithmetic import Arithmetic
from pipeline.verify.oracle.rounding.rounded_tensors import (
    Noise,
    OperationMemory,
    Rounded,
    flat,
    is_inexact,
    transform,
    unit,
    wide,
)

Function = Callable[..., Any]
_LEAST = 1e-37  # below, and above its reciprocal, a number is none in float32
_PLAIN = (float, int, bool, str, type(None))


class WrappedRun:
    """One call: wrapped arguments, parameters and outputs."""

    def __init__(
        self,
        function: Function,
        arguments: Sequence[Any],
        rounding: tuple[OperationMemory, Noise | None],
        *,
        gradients: bool = False,
        displaced: Mapping[int, torch.Tensor] | None = None,
    ) -> None:
        """`displaced`: id of a tensor -> float64 that is added to its value."""
        self.arithmetic = Arithmetic(*rounding)
        self._gradients = gradients
        self._displaced = displaced or {}
        self._seen: dict[int, torch.Tensor] = {}
        self.arguments = transform(tuple(arguments), self._wrapped)
        module = _module_of(function)
        # Outside of the mode, which would wrap the wrappers.
        called, state = (None, {}) if module is None else self._state(module)
        with self.active():
            if called is None:
                outputs = function(*self.arguments)
            else:
                outputs = torch.func.functional_call(called, state, self.arguments)
        self.tensors = output_tensors(outputs)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """The mode, without kernels that would take whole layers at once."""
        fast_path = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        others = {"deterministic": None, "allow_tf32": None, "fp32_precision": None}  # stay as they are
        # Attention kernels round the scores or their exponentials to 16 bits before the second product.
        reduced = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()  # type: ignore[no-untyped-call]
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
        try:
            with (
                torch.backends.mkldnn.flags(enabled=False, **others),
                sdpa_kernel(SDPBackend.MATH),
                torch.set_grad_enabled(self._gradients),
                self.arithmetic,
            ):
                yield
        finally:
            torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(reduced)
            torch.backends.mha.set_fastpath_enabled(fast_path)

    def wrapper(self, tensor: torch.Tensor) -> torch.Tensor:
        """The wrapper of an argument or a parameter in this run."""
        return self._seen[id(tensor)]

    def _wrapped(self, item: Any) -> Any:
        if not isinstance(item, torch.Tensor):
            return item
        if id(item) not in self._seen:
            wanted = self._gradients and is_inexact(item)
            if isinstance(item, torch.nn.Parameter):
                wanted = wanted and item.requires_grad
            wrapped = self.arithmetic.wrap(item, requires_grad=wanted)
            if id(item) in self._displaced and isinstance(wrapped, Rounded):
                wrapped.value.add_(self._displaced[id(item)])
            self._seen[id(item)] = wrapped
        return self._seen[id(item)]

    def _state(self, module: torch.nn.Module) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
        """A module of its own, and wrappers of its parameters and buffers."""
        fresh = _fresh(module)
        parameters = {name: self._wrapped(item) for name, item in fresh.named_parameters()}
        return fresh, parameters | {name: self.arithmetic.wrap(item) for name, item in fresh.named_buffers()}


def with_narrow_attributes(function: Function) -> torch.nn.Module | None:
    """The module with its numbers in float32, as kernels get them; None if that changes none.

    It matters where they are computed with before they meet a tensor: `1 - beta`. Those in tuples, lists and
    dicts of plain values are among them.
    """
    module = _module_of(function)
    changes = {
        (name, attribute): narrow
        for name, part in (module.named_modules() if module is not None else ())
        for attribute, value in vars(part).items()
        if all(type(leaf) in _PLAIN for leaf in flat(value))
        if (narrow := transform(value, _in_float32)) != value
    }
    fresh = _fresh(module) if module is not None and changes else None
    if fresh is None or fresh is module:
        return None
    for (name, attribute), narrow in changes.items():
        setattr(fresh.get_submodule(name), attribute, narrow)
    return fresh


def _in_float32(value: Any) -> Any:
    if type(value) is not float or not _LEAST < abs(value) < 1 / _LEAST:
        return value
    return torch.tensor(value, dtype=torch.float32).item()


def output_tensors(outputs: Any) -> list[torch.Tensor]:
    """Tensors and numbers of nested outputs, in order; anything else is left out."""
    numbers = torch.Tensor | float | int
    return [torch.as_tensor(item) for item in flat(outputs) if isinstance(item, numbers)]


def tensor_arguments(function: Function, arguments: Sequence[Any]) -> list[torch.Tensor]:
    """What has a gradient: each floating point argument once, in order, then the parameters that want one."""
    module = _module_of(function)
    parameters = [] if module is None else [item for item in module.parameters() if item.requires_grad]
    found = {id(item): item for item in (*flat(tuple(arguments)), *parameters) if is_inexact(item)}
    return list(found.values())


def whole_run(
    function: Function, arguments: Sequence[Any], memory: OperationMemory, noise: Noise | None
) -> list[torch.Tensor]:
    """The function as one operation, for code that cannot run on wrappers: inputs perturbed, outputs rounded.

    It runs in float64, or in its own dtypes where that fails; what it raises there is raised.
    """
    arithmetic = Arithmetic(memory, noise)
    module = _module_of(function)

    def fresh(convert: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
        given = transform(tuple(arguments), lambda item: convert(item) if is_inexact(item) else item)
        called = function if module is None else copy.deepcopy(module)._apply(convert)  # type: ignore[no-untyped-call]
        with torch.no_grad():
            return output_tensors(called(*given))

    def widened(item: torch.Tensor) -> torch.Tensor:
        value = item.detach().to(wide(item.dtype)) if is_inexact(item) else item.clone()
        if noise is None or not is_inexact(item):
            return value
        return value * noise.draw(value.shape).mul(2.0 * unit(item.dtype)).add_(1.0)

    nominal = fresh(lambda item: item.detach().clone())
    try:
        values = fresh(widened)
    except (RuntimeError, TypeError, NotImplementedError):
        values = [widened(item) for item in nominal]
    return [arithmetic.rounded(value, item.dtype) for value, item in zip(values, nominal, strict=True)]


def _module_of(function: Function) -> torch.nn.Module | None:
    if isinstance(function, torch.nn.Module):
        return function
    owner = getattr(function, "__self__", None)
    is_forward = getattr(function, "__name__", "") == "forward"
    return owner if isinstance(owner, torch.nn.Module) and is_forward else None


def _fresh(module: torch.nn.Module) -> torch.nn.Module:
    """A copy that shares the parameters, which stay unchanged, and nothing else."""
    shared = {id(item): item for item in module.parameters()}
    try:
        return copy.deepcopy(module, shared)
    except (RuntimeError, TypeError, NotImplementedError):
        return module  # what it holds cannot be copied, so it is as stateful as its author made it
