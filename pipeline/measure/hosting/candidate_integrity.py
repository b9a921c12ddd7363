"""Is a candidate still what verified, timed with what it was timed with? Runs in its process.

`TimerIntegrity` names what the candidate replaced of what it is timed with. Verify looks at far more, but in
a process in which nothing is timed: a candidate can tell the two apart. Code of the same process can hide
from this, in Python's frames for example; the kernel's account of its CPU time still shows that a clock is
false (`pipeline.measure.hosting.clock_check`).

`FirstOutputs` compares results: what verified may count its calls and do less once it is timed. So a call
after the timed ones, on the content of the first one and on poisoned outputs, has to give what the first one
gave.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.backends.devices.device import Call, Timer
from pipeline.measure.hosting.input_content import Content
from pipeline.sandbox.observation.module_copy import module_copy

if TYPE_CHECKING:
    import torch


MODULES = (
    "builtins",
    "gc",
    "msgspec",
    "msgspec.msgpack",
    "multiprocessing.connection",
    "sys",
    "threading",
    "time",
    "torch.cuda",
    "torch.cuda.streams",
)
CLASSES = (
    "multiprocessing.connection.Connection",
    "multiprocessing.connection._ConnectionBase",
    "torch.cuda.Event",
    "torch.cuda.Stream",
)
"""What clocks are read with and commands come through, besides this package's own functions."""


class TimerIntegrity:
    """Made before the candidate's code is loaded: some milliseconds."""

    def __init__(self, timer: Timer) -> None:
        self._surroundings = module_copy("pipeline.sandbox.observation.process_state")
        self._before = self._surroundings.snapshot((*MODULES, type(timer).__module__), CLASSES, ())
        self._timer = timer
        self._attributes = frozenset(vars(timer))
        self._clocks = (time.perf_counter_ns, time.perf_counter, time.sleep)

    def changes(self) -> tuple[str, ...]:
        """All that was replaced since, in a millisecond or two: `time.perf_counter_ns was replaced`."""
        hiding = sorted(vars(self._timer).keys() - self._attributes)
        found: tuple[str, ...] = self._surroundings.changes(self._before)
        return (*found, *(f"{type(self._timer).__name__}.{name} was replaced" for name in hiding))

    def clock_changed(self) -> bool:
        """Whether the clock itself was replaced; in less than a microsecond, so right before a batch."""
        # One by one: nothing here calls what could have been replaced.
        perf_counter_ns, perf_counter, sleep = self._clocks
        return (
            time.perf_counter_ns is not perf_counter_ns
            or time.perf_counter is not perf_counter
            or time.sleep is not sleep
        )


POISON = 77
"""What integers hold before a call; floating-point numbers are NaN."""
_CLOSE = 0.05  # of the value or of the largest one: sums in another order differ by far less


class FirstOutputs:
    """What a callable gave when it was loaded."""

    def __init__(self, content: Content, seed: int, run: Callable[[Call], object]) -> None:
        self._content = content
        self._seed = seed
        self._run = run
        """Makes a call and waits for its end."""
        self._outputs: dict[str, torch.Tensor] = {}

    def keep(self, bind: Callable[[], Call]) -> None:
        """Call it on the content as it is, which is that of the seed."""
        self._call(bind)
        self._outputs = {name: tensor.clone() for name, tensor in self._content.outputs().items()}

    def difference(self, bind: Callable[[], Call]) -> str | None:
        """Call it on that content again: what is not as it was; None where everything is."""
        self._content.renew(self._seed)
        self._call(bind)
        for name, tensor in self._content.outputs().items():
            wrong = _different(self._outputs[name], tensor)
            if wrong:
                return (
                    f"called after the timed calls, on inputs that it had at first, it gives {wrong:,} of "
                    f"{tensor.numel():,} elements of {name} otherwise: what was timed is not what verified"
                )
        return None

    def _call(self, bind: Callable[[], Call]) -> None:
        """On poisoned outputs: what it does not write shows."""
        for tensor in self._content.outputs().values():
            tensor.fill_(float("nan") if tensor.dtype.is_floating_point else POISON)
        self._run(bind())


def _different(first: "torch.Tensor", late: "torch.Tensor") -> int:
    """How many elements are further apart than another order of summation explains."""
    import torch

    if torch.equal(first, late):
        return 0
    before, after = first.double(), late.double()
    finite = before[before.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    close = torch.isclose(after, before, rtol=_CLOSE, atol=_CLOSE * largest, equal_nan=True)
    return int((~close).sum())
