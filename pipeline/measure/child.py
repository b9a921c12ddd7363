"""The measuring child: hosts one callable in a process of its own and times it on command.

Commands arrive one at a time, and nothing runs between them:
`SetUp` (who am I), `Load` (load, compile, first call), `Calibrate` (calls per batch), then for each batch
`Prepare` (fresh content, untimed calls) and `Go` (the timed calls).
"""

import functools
import importlib
import os
import re
import resource
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Literal, assert_never

from pipeline.backends.backend import CompileJob, LaunchError, without_copies
from pipeline.backends.registry import backend
from pipeline.measure.content import Content
from pipeline.measure.timer import Call, Timer, timer_for
from pipeline.records.compiled import Compiled
from pipeline.records.hardware import BackendKind
from pipeline.records.kernel import GradientOf
from pipeline.records.problem import Problem
from pipeline.records.record import Record
from pipeline.workers.channel import Channel

TARGET = "pipeline.measure.child:serve"
MEMORY_LIMIT = 16 << 30  # bytes beyond what the process has when it starts
MOST_CALLS = 1_000_000  # in one batch


class Candidate(Record, frozen=True, kw_only=True, tag="candidate"):
    """A compiled variant; its outputs are preallocated."""

    job: CompileJob
    compiled: Compiled
    root: str
    """The repository."""
    folder: str
    """Where compile left the artifact."""


class Reference(Record, frozen=True, kw_only=True, tag="reference"):
    """The kernel's reference in PyTorch: as it is, or through torch.compile.

    Of a backward kernel it is the forward's reference, called and differentiated in every call.
    """

    function: str
    """`module:function`."""
    gradient_of: GradientOf | None = None
    compiled: Literal["no", "trusting", "trying"] = "no"
    """Whether through torch.compile, and whether that takes the processor's word for the vector instructions
    that the compiler knows. Trying them out takes 8 s with a cold cache, 1 s with a warm one (2 cores)."""


class SetUp(Record, frozen=True, kw_only=True, tag="set_up"):
    """What to host."""

    hosted: Candidate | Reference
    problem: Problem
    kind: BackendKind
    flush_cache: bool


class Load(Record, frozen=True, kw_only=True, tag="load"):
    """Load it and call it once."""

    seed: int


class Calibrate(Record, frozen=True, kw_only=True, tag="calibrate"):
    """Warm up, then find how many calls make a batch."""

    warmup_seconds: float
    batch_seconds: float


class Prepare(Record, frozen=True, kw_only=True, tag="prepare"):
    """Make fresh content and settle."""

    seed: int
    settle_seconds: float | None
    """Untimed calls for so long, at least one; None: no call."""


class Go(Record, frozen=True, kw_only=True, tag="go"):
    """Run the timed calls."""

    calls: int


Command = SetUp | Load | Calibrate | Prepare | Go


class Ready(Record, frozen=True, kw_only=True, tag="ready"):
    """Sent before any code of a candidate is loaded."""

    process: int
    """Process and session id."""


class Loaded(Record, frozen=True, kw_only=True, tag="loaded"):
    """It works."""

    setup_seconds: float
    first_call_seconds: float
    facts: dict[str, str]


class Refused(Record, frozen=True, kw_only=True, tag="refused"):
    """It cannot be loaded or called; the process ends."""

    reason: str
    out_of_memory: bool = False


class Calibrated(Record, frozen=True, kw_only=True, tag="calibrated"):
    """Calls in one batch, and what one call takes about."""

    calls: int
    call_seconds: float


class Prepared(Record, frozen=True, kw_only=True, tag="prepared"):
    """The next `Go` runs nothing but the timed calls."""


class Ran(Record, frozen=True, kw_only=True, tag="ran"):
    """Seconds of the whole batch, by this process's clock."""

    seconds: float


Answer = Ready | Loaded | Refused | Calibrated | Prepared | Ran


def serve(channel: Channel) -> None:
    """Runs in the forked child until the channel closes."""
    set_up: SetUp = channel.receive(SetUp)
    channel.send(Ready(process=os.getpid()))
    host = _Host(set_up)
    while True:
        try:
            command: Command = channel.receive(Command)
        except EOFError:
            return
        answer = host.obey(command)
        channel.send(answer)
        if isinstance(answer, Refused):
            return


class _Host:
    """The callable with its tensors and its clock."""

    def __init__(self, set_up: SetUp) -> None:
        self._set_up = set_up
        self._timer: Timer = timer_for(set_up.kind, flush_cache=set_up.flush_cache)
        self._timer.prepare()
        if set_up.kind == "cpu":  # a GPU's driver reserves address space without end
            _limit_memory()
        # Tensors belong to the problem; the set-up time of a kernel is its own.
        self._content = Content(set_up.problem, self._timer.device)
        self._bind: Callable[[], Call] = _not_loaded
        self._call: Call = _not_loaded

    def obey(self, command: Command) -> Answer:
        match command:
            case Load():
                self._content.renew(command.seed)
                return self._attempt(self._load)
            case Calibrate():
                return self._attempt(lambda: self._calibrate(command))
            case Prepare():
                self._content.renew(command.seed)
                self._call = self._bind()
                return self._attempt(lambda: self._settle(command.settle_seconds))
            case Go():
                return self._attempt(lambda: Ran(seconds=self._timer.batch(self._call, command.calls)))
            case SetUp():
                raise ValueError("a measuring child is set up once")
        assert_never(command)

    def _attempt(self, action: Callable[[], Answer]) -> Answer:
        """Whatever a foreign callable raises is its outcome; the traceback goes to the log."""
        try:
            return action()
        except LaunchError as error:
            return Refused(reason=_one_line(error))
        except Exception as error:
            traceback.print_exc()
            # torch reports a failed allocation as a RuntimeError.
            starved = isinstance(error, MemoryError) or "allocate memory" in str(error)
            return Refused(reason=f"{type(error).__name__}: {_one_line(error)}", out_of_memory=starved)

    def _load(self) -> Answer:
        clock = time.perf_counter
        start = clock()
        self._bind = _binder(self._set_up, self._content)
        self._call = self._bind()
        loaded = clock()
        self._timer.batch(self._call, 1)
        called = clock()
        return Loaded(
            setup_seconds=loaded - start, first_call_seconds=called - loaded, facts=self._timer.facts()
        )

    def _calibrate(self, command: Calibrate) -> Answer:
        self._timer.settle(self._call, command.warmup_seconds)
        calls = 1
        while True:
            # The faster of two: a batch that something disturbed would be taken for a long one.
            seconds = min(self._timer.batch(self._call, calls) for _ in range(2))
            if seconds >= command.batch_seconds or calls >= MOST_CALLS:
                return Calibrated(calls=calls, call_seconds=seconds / calls)
            # Aim a little beyond the goal, in steps that one slow call cannot make absurd.
            growth = 1.2 * command.batch_seconds / max(seconds, 1e-9)
            calls = min(MOST_CALLS, max(calls + 1, int(calls * min(growth, 100.0))))

    def _settle(self, seconds: float | None) -> Answer:
        if seconds is not None:
            self._timer.settle(self._call, seconds)
        return Prepared()


def _binder(set_up: SetUp, content: Content) -> Callable[[], Call]:
    """Load the callable; what comes back binds it to the tensors as they lie at that moment."""
    match set_up.hosted:
        case Candidate() as candidate:
            launch = backend(candidate.job.variant.backend).load(
                candidate.job, candidate.compiled, Path(candidate.root), Path(candidate.folder)
            )
            timed = without_copies(launch)
            return lambda: functools.partial(timed, dict(content.tensors))
        case Reference() as reference:
            function = _reference(reference)
            if reference.gradient_of is not None:
                from pipeline.checks.gradient import differentiated

                function = differentiated(function, reference.gradient_of, set_up.problem.names("input"))
            keywords = {**set_up.problem.scalars, **set_up.problem.attributes}
            return lambda: functools.partial(function, *content.inputs(), **keywords)
        case _:
            assert_never(set_up.hosted)


def _reference(reference: Reference) -> Callable[..., object]:
    module, _, name = reference.function.partition(":")
    function: Callable[..., object] = getattr(importlib.import_module(module), name)
    if reference.compiled == "no":
        return function
    import torch
    import torch._dynamo.config
    import torch._inductor.config

    # Compiling again while the clock runs must not go unnoticed.
    torch._dynamo.config.error_on_recompile = True
    # A pool of compiler processes takes seconds to start, and there is one file to build.
    torch._inductor.config.compile_threads = 1
    if reference.compiled == "trusting":
        torch._inductor.config.cpp.vec_isa_ok = True
    return torch.compile(function, dynamic=False)


def _limit_memory() -> None:
    """A limit of the kernel's: the sandbox's would look at this process again and again while it is timed."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _one_line(error: Exception) -> str:
    """What a table has room for; of a compiler's output the line that says what is wrong."""
    wrong = [line for line in str(error).splitlines() if re.search(r"\berror: ", line)]
    text = " ".join((wrong[0] if wrong else str(error)).split()) or type(error).__name__
    return text[-300:] if wrong else text[:300]


def _not_loaded() -> Call:
    raise RuntimeError("this measuring child has loaded nothing")
