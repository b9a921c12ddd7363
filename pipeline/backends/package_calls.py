"""Call a function of an installed package as if it were ours: tensors by name, outputs in place.

In: a `Call` (which function, its arguments and results). Out: an `Entry` like those of our own sources, and
`bare`, the same without what only the judge needs. A result that fits is copied into the output's buffer. One
that does not (another shape or dtype, the memory of an input or of another result) is given back instead, for
the caller to show: a copy would cast it, broadcast it, or hide where it lies.

Who times the callable takes `bare`: it leaves the results where the callable put them, as with the reference,
so the callable's own allocations count and the copy does not.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pipeline.backends.installed_packages import forget
from pipeline.records.configuration.kernel import Argument, Call, Given, GradientOf, Gradients

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]


class CalledEntry:
    """What `Call` declares, ready to be called."""

    def __init__(self, call: Call, outputs: tuple[str, ...]) -> None:
        forget(call.function)  # modules remember the device that they were imported for
        self._call = call
        self._function = find(call.function)
        self._outputs = frozenset(outputs)

    def __call__(self, **named: Any) -> "Tensors":
        """Write the outputs; returned are the results that did not fit, by the output's name."""
        return _deliver(self.results(named), named, self._outputs)

    def bare(self, **named: Any) -> None:
        """The call alone."""
        self.results(named)

    def results(self, named: Mapping[str, Any]) -> "Tensors":
        """Call it; what is wanted of its results, by the output's name.

        Raises
        ------
        TypeError
            It returned too few results, or something that is no tensor.
        """
        call = self._call
        positional = [_value(argument, named) for argument in call.arguments]
        keywords = {name: _value(argument, named) for name, argument in call.keywords.items()}
        if call.gradients is None:
            returned = _sequence(self._function(*positional, **keywords))
        else:
            returned = _gradients(lambda *each: self._function(*each, **keywords), positional, call, named)
        if len(returned) < len(call.results):
            raise TypeError(
                f"{call.function} returned {len(returned)} results, {len(call.results)} are declared"
            )
        wanted = {name: result for name, result in zip(call.results, returned, strict=False) if name}
        for name, result in wanted.items():
            if not hasattr(result, "untyped_storage"):
                kind = type(result).__name__
                raise TypeError(f"{call.function}: {name}: expected a tensor, got {kind}")
        return wanted


def find(path: str) -> Callable[..., Any]:
    """The callable behind `module:name` or `module:Class.method`; raises what the import raises."""
    module, _, names = path.partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found  # type: ignore[no-any-return]


def differentiated(
    reference: Callable[..., Any], declared: GradientOf, names: tuple[str, ...]
) -> Callable[..., Any]:
    """Inputs of the backward in the order of `names`, constants by keyword -> the gradients, by autograd.

    The forward pass is part of every call.
    """

    def gradients(*tensors: "torch.Tensor", **constants: Any) -> "tuple[torch.Tensor, ...]":
        import torch

        given = dict(zip(names, tensors, strict=True))
        upstream = [given.pop(name) for name in declared.upstream]
        leaves = {name: given[name].detach().requires_grad_() for name in declared.inputs}
        with torch.enable_grad():
            outputs = reference(*(given | leaves).values(), **constants)
            roots = outputs if isinstance(outputs, tuple | list) else (outputs,)
            return torch.autograd.grad(roots, list(leaves.values()), upstream)

    return gradients


def _value(argument: Argument, named: Mapping[str, Any]) -> Any:
    match argument:
        case str():
            return named[argument]
        case Given(copy=str(name)):
            return named[name].clone()
        case Given():
            return argument.literal
    return argument


def _gradients(
    function: Callable[..., Any], positional: list[Any], call: Call, named: Mapping[str, Any]
) -> tuple[Any, ...]:
    """Forward, then backward; gradients in the order that is declared."""
    import torch

    assert call.gradients is not None
    declared: Gradients = call.gradients
    leaves: dict[str, torch.Tensor] = {}
    arguments = list(positional)
    for number, argument in enumerate(call.arguments):
        name = argument.copy if isinstance(argument, Given) else argument
        if isinstance(name, str) and name in declared.of:
            arguments[number] = leaves[name] = positional[number].detach().requires_grad_()
    with torch.enable_grad():
        outputs = _sequence(function(*arguments))[: len(declared.upstream)]
        upstream = [named[name] for name in declared.upstream]
        return torch.autograd.grad(outputs, [leaves[name] for name in declared.of], upstream)


def _sequence(returned: Any) -> tuple[Any, ...]:
    return tuple(returned) if isinstance(returned, tuple | list) else (returned,)


def _deliver(results: "Tensors", named: Mapping[str, Any], outputs: frozenset[str]) -> "Tensors":
    """Copy what fits; the rest goes back."""
    inputs = [value for name, value in named.items() if name not in outputs and _is_tensor(value)]
    taken = [_place(tensor) for tensor in inputs if tensor.numel()]
    strange: Tensors = {}
    for name, result in results.items():
        buffer = named[name]
        place = _place(result)
        alike = result.shape == buffer.shape and result.dtype == buffer.dtype
        if not alike or (place != 0 and result.numel() and place in taken):
            strange[name] = result
            continue
        taken.append(place)
        buffer.copy_(result.detach())
    return strange


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "untyped_storage")


def _place(tensor: "torch.Tensor") -> int:
    """Where its memory begins; 0 where it has none (`meta`)."""
    return tensor.untyped_storage().data_ptr()
