"""Let candidates that were written for a device of CUDA run on the host, as they are.

In: whether tensors shall seem to lie on the device. Out: a mode in which whatever asks for `cuda` gets the
host, and, where wanted, tensors say that they are on `cuda:0`. Nothing is computed differently.
"""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pipeline.verify.harness.returning.runtime.fake_cuda import stand_in_for_cuda
from pipeline.verify.harness.returning.runtime.fake_triton import stand_in_for_device, stand_in_for_warmup

_Base: Any = torch._C.TensorBase
_host, _device = torch.device("cpu"), torch.device("cuda", 0)


def pretend(limits: dict[str, int], *, shown: bool) -> Callable[[], AbstractContextManager[Any]]:
    """Prepare this process, once, before the candidate is imported; the result makes a mode for a thread.

    `shown`: tensors seem to lie on the device, `torch.cuda` and Triton's driver answer as if there were one
    with these limits. Otherwise only requests for it are answered with the host.
    """
    if shown:
        stand_in_for_cuda(limits)
        stand_in_for_device(limits)
        stand_in_for_warmup()
    _host_generators()
    _host_contexts()
    mode = functools.partial(_Pretence, shown=shown)
    _backward_too(mode)
    return mode


class _Pretence(TorchFunctionMode):
    """Sees calls of PyTorch's functions before they are made."""

    def __init__(self, *, shown: bool) -> None:
        super().__init__()
        self._shown = shown

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = keywords or {}
        name = getattr(function, "__name__", "")
        if name == "__get__":
            return self._attribute(function, arguments)
        stand_in = _METHODS.get(name)
        if stand_in is not None and getattr(_Base, name, None) is function:
            return stand_in(*arguments, **keywords)
        arguments = tuple(_on_host(value, text=name == "to") for value in arguments)
        if "device" in keywords:
            keywords = {**keywords, "device": _on_host(keywords["device"], text=True)}
        if keywords.get("pin_memory"):
            keywords = {**keywords, "pin_memory": False}
        return function(*arguments, **keywords)

    def _attribute(self, function: Any, arguments: Any) -> Any:
        found = function(*arguments)
        if self._shown:
            attribute = function.__self__
            if attribute is _Base.device and found == _host:
                return _device
            if attribute is _Base.is_cuda:
                return arguments[0].device == _host  # the mode is not active in itself
            if attribute is _Base.is_cpu:
                return False
        return found


def _on_host(value: Any, *, text: bool) -> Any:
    """The host in place of the device; strings and numbers only where a device is meant."""
    if isinstance(value, torch.device):
        return _host if value.type == "cuda" else value
    if text and isinstance(value, str) and value.partition(":")[0] == "cuda":
        return _host
    return _host if text and type(value) is int else value


def _to_device(tensor: torch.Tensor, *_arguments: Any, **_keywords: Any) -> torch.Tensor:
    """It is there already, as `Tensor.cuda` finds it on a device."""
    return tensor


def _to_host(tensor: torch.Tensor, **_keywords: Any) -> torch.Tensor:
    """A copy: writing to it does not change what is on the device."""
    return tensor.clone()


_METHODS: dict[str, Callable[..., Any]] = {
    "cuda": _to_device,
    "cpu": _to_host,
    "pin_memory": _to_device,
    "get_device": lambda _tensor: 0,
    "record_stream": lambda _tensor, _stream: None,
}


def _backward_too(mode: Callable[[], AbstractContextManager[Any]]) -> None:
    """A mode is not active in what it has been asked to call; a candidate's `backward` is called there."""
    engine: Any = torch.autograd
    run = engine._engine_run_backward

    @functools.wraps(run)
    def propagated(*arguments: Any, **keywords: Any) -> Any:
        with mode():
            return run(*arguments, **keywords)

    engine._engine_run_backward = propagated


def _host_generators() -> None:
    class Generator(torch.Generator):
        """PyTorch's, on the host."""

        def __new__(cls, device: Any = "cpu") -> "Generator":
            return super().__new__(cls, _on_host(device, text=True))  # type: ignore[call-arg]

    Generator.__qualname__, Generator.__module__ = "Generator", "torch"
    torch.Generator = Generator  # type: ignore[misc]


def _host_contexts() -> None:
    """`with torch.device("cuda")` and `torch.set_default_device("cuda")`."""
    from torch.utils._device import DeviceContext

    initialize = DeviceContext.__init__

    @functools.wraps(initialize)
    def initialized(self: Any, device: Any) -> None:
        initialize(self, _on_host(device, text=True))

    DeviceContext.__init__ = initialized  # type: ignore[method-assign]
