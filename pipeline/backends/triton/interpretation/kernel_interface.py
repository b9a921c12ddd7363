"""Interpreted kernels with the interface of compiled ones, for packages that look at their kernels.

Such code asks whether something is a `JITFunction`, reads its parameters, its signature or its source, and
launches what `run` or `warmup` returned. An interpreted kernel is of another class and its `run` returns
nothing. Here it answers as the `JITFunction` of its function does, and returns a `LaunchableKernel`.
"""

import functools
import hashlib
import types
from collections.abc import Callable
from typing import Any

import triton

from pipeline.backends.triton.triton_internals import interpreter, interpreter_class

_WARPS, _REGISTERS = 4, 32  # of the kernel that seems to be compiled


class LaunchableKernel:
    """What a launch or a warm-up returns: it has facts of a binary, and can be launched."""

    def __init__(self, kernel: Any, keywords: dict[str, Any]) -> None:
        self._kernel, self._keywords = kernel, keywords
        self.n_regs, self.n_spills, self.n_max_threads = _REGISTERS, 0, 1024
        self.asm: dict[str, str] = {}
        warps = keywords.get("num_warps", _WARPS)
        self.metadata = types.SimpleNamespace(shared=0, num_warps=warps, num_ctas=1, name=kernel.__name__)

    def _init_handles(self) -> None:
        """Nothing to load."""

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self._launch, grid)

    def _launch(self, grid: Any, *arguments: Any, **keywords: Any) -> Any:
        """Arguments by position are all of the kernel's, or those that are no constants (some versions)."""
        runtime = [each.name for each in self._kernel.params if not each.is_constexpr]
        names = self._kernel.arg_names
        given = dict(zip(runtime if len(arguments) == len(runtime) else names, arguments, strict=False))
        return self._kernel.run(grid=grid, warmup=False, **{**self._keywords, **given, **keywords})


def install() -> None:
    """Give interpreted kernels that interface."""
    kernel_class = interpreter_class("InterpretedFunction")
    run = kernel_class.run

    @functools.wraps(run)
    def returning(self: Any, *arguments: Any, grid: Any, warmup: bool, **keywords: Any) -> LaunchableKernel:
        if not warmup:
            run(self, *arguments, grid=grid, warmup=False, **keywords)
        names = dict(zip(self.arg_names, arguments, strict=False))
        constants = {each.name for each in self.params if each.is_constexpr}
        known = {**names, **keywords}
        return LaunchableKernel(
            self, {name: value for name, value in known.items() if name in constants or name not in names}
        )

    kernel_class.run = returning
    kernel_class.__getattr__ = _attribute
    namespace = {"__class__": property(lambda _self: triton.JITFunction)}
    interpreter().InterpretedFunction = type(kernel_class.__name__, (kernel_class,), namespace)


def _attribute(self: Any, name: str) -> Any:
    """Of the `JITFunction` that a compiled kernel would be."""
    if "fn" not in vars(self):
        raise AttributeError(name)
    twin = vars(self).get("_compiled_twin")
    if twin is None:
        twin = self._compiled_twin = triton.JITFunction(self.fn, **_options(self.kwargs))
    if name == "cache_key":  # the compiler's follows what the source refers to, which is not compiled here
        return hashlib.sha256(twin.src.encode()).hexdigest()
    return getattr(twin, name)


def _options(keywords: dict[str, Any]) -> dict[str, Any]:
    """Those of the decorator that say how parameters are specialized."""
    names = ("do_not_specialize", "do_not_specialize_on_alignment")
    return {name: keywords[name] for name in names if name in keywords}
