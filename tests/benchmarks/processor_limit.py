"""An end for what thinks too long. In: processor seconds. Out: `Spent` in what runs meanwhile.

Processor time, and not that of the clock: what ends does not depend on who else uses the machine. Imported by
a program that has only Kernel Tuner beside it: nothing but the standard library here.
"""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class Spent(BaseException):
    """The processor seconds are used up; no `except Exception` on the way holds it up."""


@contextlib.contextmanager
def processor_limit(seconds: float) -> Iterator[None]:
    """Raise `Spent` in the body when this process computed for so long. Main thread only."""

    def end(number: int, frame: FrameType | None) -> None:
        raise Spent

    before = signal.signal(signal.SIGPROF, end)
    # Again every second: an exception that is raised in a destructor is lost.
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
