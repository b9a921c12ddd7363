"""Count the launches of Triton kernels in this process, on a device or in the interpreter.

In: nothing. Out: a function that tells how many there were since `count_launches` was called.
"""

import functools
from collections.abc import Callable
from typing import Any

import triton

from pipeline.backends.triton.execution_mode import interpreting


def count_launches() -> Callable[[], int]:
    """Observe launches from now on; called before a candidate's code is there."""
    seen: list[None] = []
    if interpreting():
        from triton.runtime.interpreter import GridExecutor

        run = GridExecutor.__call__

        @functools.wraps(run)
        def counted(executor: Any, *arguments: Any, **keywords: Any) -> Any:
            seen.append(None)
            return run(executor, *arguments, **keywords)

        GridExecutor.__call__ = counted
    else:
        triton.knobs.runtime.launch_enter_hook.add(lambda _metadata: seen.append(None))
    return seen.__len__
