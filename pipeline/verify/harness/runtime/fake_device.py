"""Runs candidates that were written for CUDA on the host, unchanged.

In: whether tensors should appear to be on the device, limits of the target. Out: a mode in which requests for
`cuda` get the host and, if wanted, tensors report `cuda:0`; a driver for Triton in a process that interprets,
under which an autotuner takes a configuration by chance. No computation changes.
"""

import functools
import inspect
import time
import types
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from pipeline.sandbox.torch_internals import TensorBase
from pipeline.verify.harness.runtime.autotuning import random_seconds, tuned
from pipeline.verify.harness.runtime.device_operators import stand_in_for_registration
from pipeline.verify.harness.runtime.fake_cuda import stand_in_for_cuda
from pipeline.verify.torch_internals import ENGINE, device_context, run_backward

_Base: Any = TensorBase
_host, _device = torch.device("cpu"), torch.device("cuda", 0)


def fake_device(limits: dict[str, int], *, shown: bool) -> Callable[[], AbstractContextManager[Any]]:
    """Prepare this process, once, before the candidate is imported; the result makes a mode for a thread.

    `shown`: tensors appear to be on the device, `torch.cuda` and Triton's driver answer as if there were one
    with these limits. Otherwise only requests for it are answered with the host.
    """
    if shown:
        stand_in_for_cuda(limits)
        stand_in_for_device(limits)
        stand_in_for_registration()
    _host_generators()
    _host_contexts()
    mode = functools.partial(_FakeDevice, shown=shown)
    _backward_too(mode)
    return mode


class _FakeDevice(TorchFunctionMode):
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

    @functools.wraps(run_backward)
    def propagated(*arguments: Any, **keywords: Any) -> Any:
        with mode():
            return run_backward(*arguments, **keywords)

    setattr(torch.autograd, ENGINE, propagated)


def _host_generators() -> None:
    class Generator(torch.Generator):
        """PyTorch's, on the host."""

        def __new__(cls, device: Any = "cpu") -> "Generator":
            return super().__new__(cls, _on_host(device, text=True))  # type: ignore[call-arg]

    Generator.__qualname__, Generator.__module__ = "Generator", "torch"
    torch.Generator = Generator  # type: ignore[misc]


def _host_contexts() -> None:
    """`with torch.device("cuda")` and `torch.set_default_device("cuda")`."""
    context = device_context()
    initialize = context.__init__

    @functools.wraps(initialize)
    def initialized(self: Any, device: Any) -> None:
        initialize(self, _on_host(device, text=True))

    context.__init__ = initialized


def stand_in_for_device(limits: dict[str, int]) -> None:
    """Make the driver active, and benchmarks calls."""
    import triton
    import triton.testing

    triton.runtime.driver.set_active(_Driver(limits))
    triton.testing.do_bench = _do_bench
    triton.testing.do_bench_cudagraph = _do_bench


class _Driver:
    """What Triton and its users ask of a device."""

    def __init__(self, limits: dict[str, int]) -> None:
        self.utils = types.SimpleNamespace(
            get_device_properties=lambda _device: {
                "max_shared_mem": limits.get("shared_memory_per_block", 232448),
                "max_num_regs": limits.get("registers_per_sm", 65536),
                "multiprocessor_count": limits.get("sm_count", 132),
                "warpSize": limits.get("warp_size", 32),
                "sm_clock_rate": 1_980_000,
                "mem_clock_rate": 2_600_000,
                "mem_bus_width": 5120,
            }
        )
        self._warp_size = limits.get("warp_size", 32)

    def get_current_target(self) -> Any:
        from pipeline.backends.triton.triton_internals import gpu_target

        return gpu_target("cuda", 90, self._warp_size)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _device: int) -> None:
        pass

    def get_current_stream(self, _device: int = 0) -> int:
        return 0

    def get_device_capability(self, _device: int = 0) -> tuple[int, int]:
        return (9, 0)

    def get_active_torch_device(self) -> Any:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return _benchmark

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(1)

    def clear_cache(self, _cache: Any) -> None:
        pass


_tuned: set[Any] = set()


def _benchmark(call: Callable[[], Any], *, quantiles: Sequence[float], **_: Any) -> list[float]:
    """Of one configuration of an autotuner: which one is taken is random, but the same in every process.

    It is run if the kernel may refuse it, and once for each autotuner: on a device, a kernel runs many times
    before its result counts, and one that changes its arguments is right only if the autotuner restores them.
    """
    from pipeline.backends.triton.interpretation.interpreted_syntax import asserts

    held = tuned(call)
    if not held:
        return [1.0 for _ in quantiles]
    tuner = held["self"]
    if tuner not in _tuned or asserts(tuner.base_fn):
        _tuned.add(tuner)
        call()
    return [random_seconds(held) for _ in quantiles]


_BENCH_SECONDS = 1.0
_clock = time.perf_counter
_benchmarked: dict[Any, float] = {}


def _do_bench(call: Callable[[], Any], *_arguments: Any, quantiles: Any = None, **_keywords: Any) -> Any:
    """Calls it once; the time of an interpreter would mislead.

    Of a tuner that works on many configurations, those count that were called in the first second.
    """
    tuner = inspect.getclosurevars(call).nonlocals.get("self") if inspect.isfunction(call) else None
    spent = _benchmarked.get(tuner, 0.0)
    found = 1.0 if spent < _BENCH_SECONDS else 2.0
    if spent < _BENCH_SECONDS:
        started = _clock()
        call()
        if tuner is not None:
            _benchmarked[tuner] = spent + _clock() - started
    return found if quantiles is None else [found for _ in quantiles]
