"""Watches calls of native code by a candidate: through ctypes, and in extension modules that it built.

In: a `LaunchLog`. Out: every call of a function that was not part of Python or its packages is a launch.
A call through ctypes into a library of PyTorch or NumPy is reported to the `DataFlow` as an operator.
"""

import ctypes
import functools
import importlib.machinery
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import Any

from pipeline.verify.harness.observers.data_flow import DataFlow
from pipeline.verify.harness.observers.kernel_launches import Kind, LaunchLog
from pipeline.verify.harness.observers.native_code import is_c_library, is_installed
from pipeline.verify.harness.observers.symbol_lookups import SymbolLookups


def watch_ctypes(
    log: LaunchLog, data_flow: DataFlow, symbol_lookups: SymbolLookups, kind_of: Callable[[str], Kind]
) -> None:
    """Functions of every library that is opened from now on are watched.

    `kind_of`: what kernels a shared object holds, as for `watch_extensions`.
    """
    initialize = ctypes.CDLL.__init__

    @functools.wraps(initialize)
    def opened(library: Any, name: Any, *arguments: Any, **keywords: Any) -> None:
        initialize(library, name, *arguments, **keywords)
        symbol_lookups.watch(str(name or ""))
        if origin_of(name) == "own":
            kind_of(str(name))
        library._FuncPtr = _watched(library._FuncPtr, origin_of(name), log, data_flow)

    ctypes.CDLL.__init__ = opened  # type: ignore[assignment, method-assign]


def watch_extensions(log: LaunchLog, symbol_lookups: SymbolLookups, kind_of: Callable[[str], Kind]) -> None:
    """Functions of every extension module that is imported from now on are watched, but those of packages.

    `kind_of`: what kernels a shared object holds.
    """
    loader = importlib.machinery.ExtensionFileLoader
    execute = loader.exec_module

    @functools.wraps(execute)
    def executed(self: Any, module: ModuleType) -> None:
        execute(self, module)
        path = getattr(module, "__file__", None) or ""
        if not is_installed(path):
            symbol_lookups.watch(path)
            _wrap(module, log, kind_of(path))

    loader.exec_module = executed  # type: ignore[method-assign]


def launches(function: str) -> bool:
    """Whether a function of a driver starts a kernel: `cuLaunchKernel`, `hipModuleLaunchKernel`."""
    return "Launch" in function


def origin_of(name: Any) -> str:
    """`own`, `c` for the C library and drivers, or the file of an installed library that may compute."""
    if name is None:
        return "c"
    path = Path(str(name))
    if "/" in str(name) and not is_installed(str(name)):
        return "own"
    return "c" if is_c_library(path.name) else path.name


def _watched(kind: Any, origin: str, log: LaunchLog, data_flow: DataFlow) -> Any:
    """A subclass of a library's type of functions."""

    class Watched(kind):  # type: ignore[misc]
        _flags_ = kind._flags_
        _restype_ = kind._restype_

        def __call__(self, *arguments: Any) -> Any:
            name = getattr(self, "__name__", "a function")
            call = functools.partial(super().__call__, *arguments)
            if origin == "c" and not launches(name):
                return call()
            if origin not in ("c", "own"):
                data_flow.computed(f"{origin}:{name}", (), ())
            return log.around("ctypes", name, arguments, call)

    Watched.__name__ = kind.__name__
    return Watched


def _wrap(module: ModuleType, log: LaunchLog, kind: Kind) -> None:
    for name, value in list(vars(module).items()):
        if isinstance(value, BuiltinFunctionType):
            setattr(module, name, _recorded(value, f"{module.__name__}.{name}", log, kind))


def _recorded(function: Callable[..., Any], name: str, log: LaunchLog, kind: Kind) -> Callable[..., Any]:
    @functools.wraps(function)
    def recorded(*arguments: Any, **keywords: Any) -> Any:
        run = functools.partial(function, *arguments, **keywords)
        return log.around(kind, name, (*arguments, *keywords.values()), run)

    return recorded
