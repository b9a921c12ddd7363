"""Gives the candidate's model the weights of the reference.

In: a module, and the reference's parameters and buffers by name, in order. Out: `WeightTransfer`: the
counterpart of each: a tensor of that name and shape, one that already holds the same values in whatever form,
or the next one of that shape. Parameters without a counterpart stay as the seed made them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from pipeline.records.record import Record
from pipeline.sandbox.observation import tensor_access


class WeightTransfer(Record, frozen=True, kw_only=True):
    """How the reference's weights were taken over."""

    state: str
    """`equal`, `by name`, `by shape`, `none`."""
    missing: tuple[str, ...]
    """Floating tensors of the reference without a counterpart."""
    spare: int
    """Elements of the candidate's floating tensors that took over nothing."""
    names: dict[str, str]
    """Of the candidate's tensors -> of the reference's."""


def transfer_weights(model: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> WeightTransfer:
    """Copy weights into the model."""
    own = dict(_own_tensors(model)) if isinstance(model, torch.nn.Module) else {}
    names: dict[str, str] = {}
    ways: list[str] = []
    with tensor_access.plainly():
        for match in (_by_name, _by_values, _by_shape):
            for theirs, value in state.items():
                if theirs in names.values():
                    continue
                free = {name: tensor for name, tensor in own.items() if name not in names}
                found = match(theirs, value, free)
                if found is not None:
                    names[found] = theirs
                    ways.append(_fill(own[found], value, match))
        missing = tuple(
            name for name, value in state.items() if value.is_floating_point() and name not in names.values()
        )
        spare = sum(
            each.numel() for name, each in own.items() if name not in names and each.is_floating_point()
        )
    return WeightTransfer(state=_summary(ways, state), missing=missing, spare=spare, names=names)


def _own_tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters, buffers, and tensors that are plain attributes of a module; each once."""
    seen: set[int] = set()
    for prefix, module in model.named_modules():
        groups: tuple[Mapping[str, Any], ...] = (module._parameters, module._buffers, vars(module))
        for group in groups:
            for name, value in group.items():
                if tensor_access.is_plain(value) and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{prefix}.{name}".lstrip("."), value


def _by_name(name: str, value: torch.Tensor, free: Mapping[str, torch.Tensor]) -> str | None:
    return name if name in free and free[name].shape == value.shape else None


def _by_values(_name: str, value: torch.Tensor, free: Mapping[str, torch.Tensor]) -> str | None:
    """The same numbers, transposed or reshaped: to be left alone."""
    if value.numel() < 2 or bool((value == value.flatten()[0]).all()):
        return None  # a constant resembles too much
    # Two tensors drawn from one seed may hold equal numbers by chance: one of the same shape goes first.
    same = {name: tensor for name, tensor in free.items() if tensor.shape == value.shape}
    wanted = None
    for name, tensor in (same or free).items():
        if tensor.numel() == value.numel() and tensor.dtype == value.dtype:
            wanted = _sorted(value.cpu()) if wanted is None else wanted
            if torch.equal(_sorted(tensor.detach().cpu()), wanted):
                return name
    return None


def _sorted(tensor: torch.Tensor) -> torch.Tensor:
    """In a type that PyTorch sorts, which those of 8 bits are not."""
    narrow = tensor.is_floating_point() and tensor.itemsize == 1
    return (tensor.float() if narrow else tensor).flatten().sort().values


def _by_shape(_name: str, value: torch.Tensor, free: Mapping[str, torch.Tensor]) -> str | None:
    fitting = (
        name
        for name, tensor in free.items()
        if tensor.shape == value.shape and tensor.is_floating_point() == value.is_floating_point()
    )
    return next(fitting, None)


def _fill(own: torch.Tensor, value: torch.Tensor, match: Any) -> str:
    if match is _by_values or torch.equal(own.detach().to(value.device, value.dtype), value):
        return "equal"
    own.detach().copy_(value)
    return "by name" if match is _by_name else "by shape"


def _summary(ways: list[str], state: Mapping[str, torch.Tensor]) -> str:
    if state and not ways:
        return "none"
    return next((way for way in ("by shape", "by name") if way in ways), "equal")
