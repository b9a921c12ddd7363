"""Sees every operator of PyTorch that runs, also those that C++ code calls; adds guards to allocations.

In: operators, as PyTorch dispatches them in this thread. Out: a `DataFlow` that knows of them, and tensors in
`GuardedAllocations` where the candidate allocates.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from pipeline.sandbox.observation import tensor_access
from pipeline.sandbox.torch_internals import TorchDispatchMode
from pipeline.verify.harness.observers.allocations import GuardedAllocations
from pipeline.verify.harness.observers.data_flow import DataFlow
from pipeline.verify.harness.runtime.device_operators import PYTORCHS, REPLACED
from pipeline.verify.oracle.computing_operators import is_computing
from pipeline.verify.torch_internals import (
    Operator,
    has_kernel,
    operator_name,
    redispatch,
    schema_of,
)

_ZERO, _CONSTANT = 0.0, "constant"
_ALLOCATIONS: dict[str, float | str | None] = {
    "aten::empty": None,
    "aten::empty_like": None,
    "aten::empty_strided": None,
    "aten::empty_permuted": None,
    "aten::new_empty": None,
    "aten::new_empty_strided": None,
    "aten::zeros": _ZERO,
    "aten::zeros_like": _ZERO,
    "aten::new_zeros": _ZERO,
    "aten::ones": 1.0,
    "aten::ones_like": 1.0,
    "aten::new_ones": 1.0,
    "aten::full": _CONSTANT,
    "aten::full_like": _CONSTANT,
    "aten::new_full": _CONSTANT,
}
"""What they fill with; None: nothing."""
_is_built: Callable[[], bool] = torch.backends.cuda.is_built
_KEYS = (
    "CPU",
    *(("CUDA",) if _is_built() else ()),  # asking for a device would open the driver
    "CompositeExplicitAutograd",
    "CompositeImplicitAutograd",
)
"""Under which an operator of another library may have its kernel."""
_meta = torch.device("meta")


class TorchOperators:
    """What the watches of all threads share."""

    def __init__(self, data_flow: DataFlow, allocations: GuardedAllocations) -> None:
        self.data_flow = data_flow
        self.allocations = allocations
        self.replaced: set[str] = set()
        """Operators of PyTorch that ran a kernel of the candidate's."""
        self.own: dict[str, int] = {}
        """What the harness itself computed -> elements of its largest tensor."""
        self.custom: Callable[[str, tuple[Any, ...], Callable[[], Any]], Any] = _only_run
        """Runs an operator of a library that is not PyTorch's: name, arguments, the call."""

    def watch(self) -> "OperatorWatch":
        """A watch for one thread, to be entered there."""
        return OperatorWatch(self)


class OperatorWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees the operators of the thread that entered it."""

    supports_higher_order_operators = True

    def __init__(self, shared: TorchOperators) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._shared = shared
        self._aside = False

    @property
    def is_aside(self) -> bool:
        """Whether the harness itself works at this moment."""
        return self._aside

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Inside, operators are not recorded: they belong to the harness."""
        before, self._aside = self._aside, True
        try:
            yield
        finally:
            self._aside = before

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Otherwise PyTorch imports its compiler, about a second, to switch it off in the method below."""
        return False

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = keywords or {}
        if not isinstance(function, Operator):  # of higher order: it calls others in turn
            return function(*arguments, **keywords)
        if self._aside:
            return self._own(function, arguments, keywords)
        replaced = REPLACED.get(function.name())
        if replaced is not None:
            self._shared.replaced.add(operator_name(function))
            with self:
                return replaced(*arguments, **keywords)
        name = operator_name(function)
        if name.partition("::")[0] not in PYTORCHS:
            return self._custom(name, function, arguments, keywords)
        with tensor_access.plainly():
            made = self._allocate(name, function, arguments, keywords)
        if made is not None:
            return made
        result = function(*arguments, **keywords)
        with tensor_access.plainly():
            self._note(name, (arguments, keywords), result)
        return result

    def _own(self, function: Any, arguments: Any, keywords: Any) -> Any:
        """Run it for the harness."""
        result = function(*arguments, **keywords)
        name = operator_name(function)
        if is_computing(name):
            with tensor_access.plainly():
                sizes = map(tensor_access.numel, tensor_access.tensors_in((arguments, keywords, result)))
                self._shared.own[name] = max(*sizes, self._shared.own.get(name, 0))
        return result

    def _custom(self, name: str, function: Any, arguments: Any, keywords: Any) -> Any:
        """Run its kernel under this watch: what it calls in turn is seen as well."""
        known = (key for key in _KEYS if has_kernel(function.name(), key))
        key = next(known, None)

        def run() -> Any:
            if key is None:
                return function(*arguments, **keywords)
            with self:
                return redispatch(function, key, arguments, keywords)

        return self._shared.custom(name, (arguments, keywords), run)

    def _allocate(self, name: str, function: Any, arguments: Any, keywords: Any) -> torch.Tensor | None:
        """A tensor as the operator would make it, in guarded memory; None where that is not our business."""
        if name == "aten::resize_":
            return self._resize(arguments)
        device = _device(arguments, keywords)
        if name not in _ALLOCATIONS or device is None:
            return None
        plan = function(*arguments, **{**keywords, "device": _meta, "pin_memory": False})
        if plan.layout is not torch.strided or plan.dtype.is_complex or not plan.dtype.itemsize:
            return None
        there = None if device.type == "cpu" else device
        made = self._shared.allocations.make(tuple(plan.shape), plan.stride(), plan.dtype, there)
        if made is None:
            return None
        fill = _ALLOCATIONS[name]
        if fill is not None:
            value = _fill_value(function, arguments, keywords) if fill == _CONSTANT else fill
            torch.ops.aten.fill_.Scalar(made, value)
        self._shared.data_flow.moved((), (made,))
        return made

    def _resize(self, arguments: Any) -> torch.Tensor | None:
        """Guarded memory cannot grow: a larger tensor moves."""
        tensor, size = arguments[0], tuple(arguments[1])
        needed = torch.Size(size).numel() * tensor_access.itemsize(tensor)
        start, available = tensor_access.region(tensor)
        if needed <= available or not any(start == at for at, _ in self._shared.allocations.spans()):
            return None
        strides = torch.empty(size, device=_meta).stride()
        made = self._shared.allocations.make(size, strides, tensor_access.dtype(tensor))
        if made is None:
            return None
        tensor_access.memory(tensor_access.address(made), needed)[:available] = tensor_access.memory(
            start, available
        )
        return torch.ops.aten.set_.source_Tensor(tensor, made)  # type: ignore[no-any-return]

    def _note(self, name: str, arguments: Any, result: Any) -> None:
        given, results = tuple(tensor_access.tensors_in(arguments)), tuple(tensor_access.tensors_in(result))
        if not is_computing(name):
            self._shared.data_flow.moved(given, results)
        else:
            self._shared.data_flow.computed(name, given, results)


def _device(arguments: Any, keywords: Any) -> torch.device | None:
    """The device of an allocation; None if it cannot be guarded."""
    device = keywords.get("device")
    first = arguments[0] if arguments else None
    if isinstance(first, torch.Tensor):
        if not tensor_access.is_plain(first):
            return None
        device = device or tensor_access.device(first)
    found = torch.device(device or "cpu")
    return None if found.type == "meta" else found


def _fill_value(function: Any, arguments: Any, keywords: Any) -> Any:
    names = [argument.name for argument in schema_of(function).arguments]
    return keywords["fill_value"] if "fill_value" in keywords else arguments[names.index("fill_value")]


def _only_run(_name: str, _arguments: tuple[Any, ...], run: Callable[[], Any]) -> Any:
    return run()
