"""Triton's driver in a process that interprets: what host code asks it about the device, and warm-ups.

In: limits of the target. Out: a driver that is active, answers, and times nothing: an autotuner takes the
first of its configurations.
"""

import functools
import types
from collections.abc import Callable
from typing import Any

import torch

_WARPS, _REGISTERS = 4, 32  # of the kernel that a warm-up seems to have compiled


def stand_in_for_device(limits: dict[str, int]) -> None:
    """Make the driver active, and benchmarks calls."""
    import triton
    import triton.testing

    triton.runtime.driver.set_active(_Driver(limits))
    triton.testing.do_bench = _do_bench
    triton.testing.do_bench_cudagraph = _do_bench


def stand_in_for_warmup() -> None:
    """`kernel.warmup(...)` gives something that has registers, and can be launched."""
    from triton.runtime.interpreter import InterpretedFunction

    run = InterpretedFunction.run

    @functools.wraps(run)
    def warmed(self: Any, *arguments: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
        if warmup:
            return _Warmed(self, keywords)
        return run(self, *arguments, grid=grid, warmup=False, **keywords)

    InterpretedFunction.run = warmed


class _Warmed:
    """A kernel as a warm-up returns it."""

    def __init__(self, kernel: Any, keywords: dict[str, Any]) -> None:
        self._kernel, self._keywords = kernel, keywords
        self.n_regs, self.n_spills, self.n_max_threads = _REGISTERS, 0, 1024
        self.asm: dict[str, str] = {}
        warps = keywords.get("num_warps", _WARPS)
        self.metadata = types.SimpleNamespace(shared=0, num_warps=warps, num_ctas=1, name=kernel.__name__)

    def _init_handles(self) -> None:
        """Nothing to load."""

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        names = self._kernel.arg_names

        def launch(*arguments: Any, **keywords: Any) -> Any:
            known = {name: value for name, value in self._keywords.items() if name in names[len(arguments) :]}
            return self._kernel.run(*arguments, grid=grid, warmup=False, **{**known, **keywords})

        return launch


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
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, self._warp_size)

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
        return lambda _call, *, quantiles, **_: [1.0 for _ in quantiles]

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(1)

    def clear_cache(self, _cache: Any) -> None:
        pass


def _do_bench(call: Callable[[], Any], *_arguments: Any, quantiles: Any = None, **_keywords: Any) -> Any:
    """Calls it once; the time of an interpreter would mislead."""
    call()
    return 1.0 if quantiles is None else [1.0 for _ in quantiles]
