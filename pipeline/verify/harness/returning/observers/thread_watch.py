"""Watch what a candidate computes in threads of its own.

In: a context to be entered by every thread that Python starts from now on. Out: nothing; threads that native
code starts are not Python's and are counted elsewhere.
"""

import _thread
import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


def watch_threads(watching: Callable[[], AbstractContextManager[Any]]) -> None:
    """Replace what `threading` starts its threads with."""
    start = _thread.start_new_thread

    @functools.wraps(start)
    def started(function: Callable[..., Any], arguments: Any, keywords: Any = None) -> int:
        @functools.wraps(function)
        def watched(*given: Any, **named: Any) -> None:
            with watching():
                function(*given, **named)

        return start(watched, arguments, keywords or {})

    _thread.start_new_thread = _thread.start_new = started
    threading._start_new_thread = started  # type: ignore[attr-defined]
