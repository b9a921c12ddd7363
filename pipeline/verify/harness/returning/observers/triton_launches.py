"""Watch launches of Triton kernels in this process, in the interpreter or on a device.

In: a `LaunchLog`. Out: every launch goes through it. In the interpreter launches are also made as a device
would take them: a grid may be a number or a list, and a function of the grid sees the arguments themselves.
"""

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from pipeline.verify.harness.returning.observers.kernel_launches import LaunchLog

Aside = Callable[[], AbstractContextManager[None]]
"""Inside, operators of PyTorch are the harness's own."""


def watch_interpreter(log: LaunchLog, aside: Aside) -> None:
    """Watch launches in Triton's interpreter."""
    from triton.runtime.interpreter import GridExecutor

    run = GridExecutor.__call__
    for name in ("_init_args_hst", "_restore_args_dev"):
        setattr(GridExecutor, name, _aside(getattr(GridExecutor, name), aside))

    @functools.wraps(run)
    def launched(executor: Any, *arguments: Any, **keywords: Any) -> Any:
        executor.grid = _grid(executor, arguments, keywords)
        call = functools.partial(run, executor, *arguments, **keywords)
        return log.around("triton", executor.fn.__name__, (*arguments, *keywords.values()), call)

    GridExecutor.__call__ = launched


def watch_device(log: LaunchLog) -> None:
    """Watch launches of compiled kernels."""
    from triton.runtime.jit import JITFunction

    run = JITFunction.run

    @functools.wraps(run)
    def launched(kernel: Any, *arguments: Any, grid: Any, warmup: bool, **keywords: Any) -> Any:
        call = functools.partial(run, kernel, *arguments, grid=grid, warmup=warmup, **keywords)
        if warmup:
            return call()
        return log.around("triton", kernel.fn.__name__, (*arguments, *keywords.values()), call)

    JITFunction.run = launched


def _aside(method: Callable[..., Any], aside: Aside) -> Callable[..., Any]:
    @functools.wraps(method)
    def quiet(*arguments: Any, **keywords: Any) -> Any:
        with aside():
            return method(*arguments, **keywords)

    return quiet


def _grid(executor: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[int, ...]:
    """Programs along each axis, as plain numbers."""
    grid = executor.grid
    if callable(grid):
        known = {name: value for name, value in keywords.items() if name in executor.arg_names}
        grid = grid(inspect.getcallargs(executor.fn, *arguments, **known))
    sizes = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
    return tuple(int(size) for size in sizes)
