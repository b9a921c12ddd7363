"""Host code sees the target's device while a launch is compiled: tensors without memory that say to be there.

Launches ask for a device before they start a kernel: how many multiprocessors it has, which architecture it
is, whether a tensor lies on it. What they do then decides the binary, so the answers are the target's, from
its limits. Integer inputs have memory, of zeros, because host code may look into them (classes, lengths).
"""

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

from pipeline.backends.torch_internals import (
    ENGINE,
    TensorBase,
    run_backward,
    with_torch_function,
    without_torch_function,
)
from pipeline.records.configuration.hardware import Target
from pipeline.records.planning.problem import Problem

_DEVICE = torch.device("cuda", 0)  # as torch calls AMD's devices too
_META = torch.device("meta")
_HIP_VERSION = "6.0"  # the generation; only whether there is one is ever asked


class _Present(torch.Tensor):
    """A tensor on `meta`, or an integer one on the host, that says it lies on the device.

    Only to host code: inside of an operator, which may be written in Python, it says where it really is.
    """

    inside = 0
    """How many operators are running."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return _real_device(self) if _Present.inside else _DEVICE

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        return not _Present.inside

    @property
    def is_meta(self) -> bool:  # type: ignore[override]
        return bool(_Present.inside) and _real_device(self).type == "meta"

    @property
    def is_cpu(self) -> bool:  # type: ignore[override]
        return bool(_Present.inside) and _real_device(self).type == "cpu"


@contextlib.contextmanager
def device_present(target: Target) -> Iterator[None]:
    """Inside, torch answers questions about devices as on the target, and its tensors have no memory."""
    with contextlib.ExitStack() as stack:
        for name, answer in _answers(target).items():
            stack.enter_context(mock.patch.object(torch.cuda, name, answer))
        hip = _HIP_VERSION if target.kind == "hip" else None
        stack.enter_context(mock.patch.object(torch.version, "hip", hip))
        allocations = _Allocations()
        engine = _inside(allocations, run_backward)
        stack.enter_context(mock.patch.object(torch.autograd, ENGINE, engine))
        stack.enter_context(allocations)
        yield


def tensors_of(problem: Problem) -> dict[str, torch.Tensor]:
    """Every tensor of a problem as host code sees it; call it inside of `device_present`."""
    return {
        name: present_tensor(problem.shape(name), getattr(torch, tensor.dtype))
        for name, tensor in problem.tensors.items()
    }


def _real_device(tensor: torch.Tensor) -> torch.device:
    """Where its memory is, or would be."""
    with without_torch_function():
        where: torch.device = TensorBase.device.__get__(tensor)
    return where


def present_tensor(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """One tensor as host code sees it; call it inside of `device_present`."""
    if dtype.is_floating_point:
        return torch.empty(shape, dtype=dtype, device="meta").as_subclass(_Present)
    return torch.zeros(shape, dtype=dtype, device="cpu").as_subclass(_Present)


def is_left_on_host(value: object) -> bool:
    """Whether host code made a tensor without saying that it is to lie on the device.

    Floating ones only: integers have memory here (they may be sizes), and operators may return plain ones.
    """
    return (
        isinstance(value, torch.Tensor)
        and not isinstance(value, _Present)
        and value.is_floating_point()
        and value.numel() > 0
        and _real_device(value).type == "cpu"
    )


class _Allocations(TorchFunctionMode):
    """What is asked for on the GPU is made on `meta`, what is like a tensor where that one really is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.device or getattr(func, "__name__", "") == "__get__":
            return func(*args, **(kwargs or {}))
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            there = isinstance(args[0], _Present)
            return args[0] if there else present_tensor(tuple(args[0].shape), args[0].dtype)
        if _on_gpu(kwargs.get("device")):
            kwargs["device"] = _META
        elif "device" not in kwargs and _is_alike(func) and args and isinstance(args[0], _Present):
            kwargs["device"] = _real_device(args[0])
        moved = tuple(_META if _on_gpu(item) else item for item in args)
        _Present.inside += 1
        try:
            made = func(*moved, **kwargs)
        finally:
            _Present.inside -= 1
        there = kwargs.get("device") == _META or any(map(_on_gpu, args))
        return made.as_subclass(_Present) if there and isinstance(made, torch.Tensor) else made


def _inside(mode: TorchFunctionMode, run: Callable[..., Any]) -> Callable[..., Any]:
    """Autograd suspends modes and subclasses while it runs; the functions that it calls need them."""

    def engine(*arguments: Any, **keywords: Any) -> Any:
        outer, _Present.inside = _Present.inside, 0
        try:
            with with_torch_function(), mode:
                return run(*arguments, **keywords)
        finally:
            _Present.inside = outer

    return engine


def _is_alike(function: Any) -> bool:
    name = getattr(function, "__name__", "")
    return name.endswith("_like") or name.startswith("new_")


def _on_gpu(item: Any) -> bool:
    if isinstance(item, torch.device):
        return item.type == "cuda"
    return isinstance(item, str) and item.partition(":")[0] == "cuda"


def _answers(target: Target) -> dict[str, Any]:
    """Functions of `torch.cuda`, as the target's device would answer."""
    capability = _capability(target)
    limits = target.limits
    properties = SimpleNamespace(
        name=target.architecture,
        major=capability[0],
        minor=capability[1],
        gcnArchName=target.architecture,
        multi_processor_count=limits["sm_count"],
        warp_size=limits["warp_size"],
        regs_per_multiprocessor=limits["registers_per_sm"],
        shared_memory_per_block_optin=limits["shared_memory_per_block"],
    )
    stream = SimpleNamespace(cuda_stream=0)
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda *_: target.architecture,
        "get_device_capability": lambda *_: capability,
        "get_device_properties": lambda *_: properties,
        "current_stream": lambda *_: stream,
        "synchronize": lambda *_: None,
        "device": lambda *_: contextlib.nullcontext(),
    }


def _capability(target: Target) -> tuple[int, int]:
    """(9, 0) of sm_90; of an AMD architecture its first two digits, as torch says it: (9, 4) of gfx942."""
    digits = target.architecture.removeprefix("sm_").removeprefix("gfx")
    if target.kind == "cuda":
        return int(digits[:-1]), int(digits[-1])
    return int(digits[:-2]), int(digits[-2], 16)
