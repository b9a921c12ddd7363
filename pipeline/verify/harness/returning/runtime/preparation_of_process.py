"""Prepare a process for candidates of one kind, before anything of theirs is there.

In: where they run, limits of the device that they shall find. Out: a mode for their threads, and a record of
what they build.
"""

import contextlib
import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from pipeline.records.record import Record
from pipeline.verify.harness.returning.messages import Load
from pipeline.verify.harness.returning.runtime.extension_builds import Builds, stand_in_for_builds
from pipeline.verify.harness.returning.runtime.fake_device import pretend

_FILL = -6  # M_PERTURB: fill what malloc gives
_PATTERN = 0x80  # it gives bytes of 0x7f, huge numbers in every floating type


class Prepared(Record, frozen=True, kw_only=True, eq=False):
    """A process that is ready for a candidate."""

    pretence: Callable[[], AbstractContextManager[Any]]
    builds: Builds


def prepare(load: Load, clock: Callable[[], float]) -> Prepared:
    """Mend the interpreter, stand in for the device, watch builds."""
    builds = Builds(clock)
    stand_in_for_builds(builds, device=load.where == "cuda")
    fill = getattr(ctypes.CDLL(None), "mallopt", None)  # of the GNU C library
    if fill is not None:
        fill(_FILL, _PATTERN)
    if load.where == "interpreter":
        from pipeline.backends.triton.interpreter import mend

        mend()
    if load.where == "cuda":
        return Prepared(pretence=contextlib.nullcontext, builds=builds)
    pretence = pretend(load.limits, shown=load.where == "interpreter")
    return Prepared(pretence=pretence, builds=builds)
