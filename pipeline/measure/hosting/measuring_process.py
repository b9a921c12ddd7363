"""The measuring child: hosts one callable in a process of its own and times it on command.

Commands (`pipeline.measure.hosting.measuring_messages`) arrive one at a time, and nothing runs between them:
`SetUp` (who am I), `Load` (load, compile, first call), `Calibrate` (warm up, calls per batch), then for each
batch `Prepare` (fresh content, untimed calls) and `Go` (a few more of them, then the timed calls).
"""

import math
import os
import random
import re
import resource
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from pipeline.backends.backend import LaunchError
from pipeline.backends.devices.device import Call, CannotRecord, RecordedCall, Timer
from pipeline.backends.devices.device_registry import device
from pipeline.backends.devices.driver_errors import Meaning, meaning
from pipeline.measure import statistics
from pipeline.measure.hosting.call_costs import examine
from pipeline.measure.hosting.candidate_integrity import FirstOutputs, TimerIntegrity
from pipeline.measure.hosting.hosted_callable import Hosted, content_of, load
from pipeline.measure.hosting.input_content import Content
from pipeline.measure.hosting.measuring_messages import (
    Answer,
    Calibrate,
    Calibrated,
    CallAgain,
    Command,
    Count,
    Examine,
    Go,
    HostedModel,
    Load,
    Loaded,
    Prepare,
    Prepared,
    Ran,
    Ready,
    RefusalCause,
    Refused,
    Repeat,
    Repeated,
    Sample,
    SetUp,
    Unchanged,
    is_candidate,
    is_confined,
)
from pipeline.sandbox.confinement.confine import confine
from pipeline.sandbox.processes.channel import Channel

if TYPE_CHECKING:
    from pipeline.measure.hosting.model_content import ModelContent

TARGET = "pipeline.measure.hosting.measuring_process:serve"
MEMORY_LIMIT = 16 << 30  # bytes beyond what the process has when it starts
MOST_CALLS = 1_000_000  # in one batch
LONG_CALL = 0.05  # seconds; cold caches and sleeping workers do not count in it, and calls more would
WINDOW = 10  # batches that one drift test looks at
SHRUNK = 0.5  # of a batch's least time; calls that became so fast while they warmed up are counted again
HOST_CALLS = 200
LAUNCHES = 20  # by which a call is said to be short
LONG_LAUNCHES = 2.0  # times what its launch costs the host: a longer call hides its launch
HOST_BATCHES = 5
REPEATED = 12  # pairs of calls of a model on fresh inputs and on inputs that it has just seen,
REPEATED_SECONDS = 1.0  # or, of long calls, as many as fit


def serve(channel: Channel) -> None:
    """Runs in the forked child until the channel closes."""
    serve_as(Host, channel)


def serve_as(host_kind: "type[Host]", channel: Channel) -> None:
    """`serve` with a host that does more than ours: times with another harness too, for example."""
    set_up: SetUp = channel.receive(SetUp)
    channel.send(Ready(process=os.getpid()))
    host = host_kind(set_up)
    while True:
        try:
            command: Command = channel.receive(Command)
        except EOFError:
            return
        answer = host.obey(command)
        channel.send(answer)
        if isinstance(answer, Refused):
            return


class Host:
    """The callable with its tensors and its clock."""

    def __init__(self, set_up: SetUp) -> None:
        self._set_up = set_up
        found = device(set_up.kind)
        self._measurement = found.measurement()
        if is_confined(set_up.hosted):
            # Before any thread starts; what a confined process may not do and the others do comes first.
            self._measurement.before_confinement()
            confine(Path.cwd(), found.driver_folders())
        self.timer: Timer = self._measurement.timer(flush_cache=set_up.flush_cache)
        self.timer.prepare()
        self._is_graph = False
        self._has_graphs = found.has_graphs
        if found.is_host:  # a GPU's driver reserves address space without end
            _limit_memory()
        self._device = found
        # Tensors belong to the problem; the set-up time of a kernel is its own. A model's come with its load.
        self._content = None if isinstance(set_up.hosted, HostedModel) else content_of(set_up, found)
        self._hosted = Hosted(bind=_not_loaded, host=None)
        self.call: Call = _not_loaded
        self._first: FirstOutputs | None = None
        self._integrity = TimerIntegrity(self.timer) if is_candidate(set_up.hosted) else None

    def obey(self, command: Command) -> Answer:  # noqa: PLR0911  (one for each command)
        """Do it; what the callable raises is an answer."""
        match command:
            case Load():
                return self._attempt(lambda: self._load(command.seed))
            case Calibrate():
                return self._attempt(lambda: self._calibrate(command))
            case Prepare():
                self._tensors().renew(command.seed)
                return self._attempt(lambda: self._prepare(command.settle_seconds))
            case Go():
                return self._attempt(lambda: self._run(command))
            case CallAgain():
                return self._attempt(self._call_again)
            case Sample():
                return self._attempt(lambda: self._sample(command))
            case Repeat():
                return self._attempt(lambda: self._repeat(command.seed))
            case Count():
                return self._attempt(lambda: self._count(command.seed))
            case Examine():
                return self._attempt(lambda: self._examine(command))
            case SetUp():
                raise ValueError("a measuring child is set up once")
        assert_never(command)

    def _attempt(self, action: Callable[[], Answer]) -> Answer:
        """Whatever a foreign callable raises is its outcome; the traceback goes to the log."""
        try:
            return action()
        except (LaunchError, CannotRecord) as error:
            return Refused(reason=_one_line(error), why=_cause(error))
        except Exception as error:
            traceback.print_exc()
            return Refused(reason=f"{type(error).__name__}: {_one_line(error)}", why=_cause(error))

    def _tensors(self) -> "Content | ModelContent":
        if self._content is None:
            self._content = content_of(self._set_up, self._device)
        return self._content

    def _load(self, seed: int) -> Answer:
        content = self._tensors()
        content.renew(seed)
        clock = time.perf_counter
        start = clock()
        self._hosted = load(self._set_up, content, self._device)
        self.call = self._hosted.bind()
        loaded = clock()
        # Its clock stands inside: freeing memory first, so that the peak can be seen, is not the call's.
        first: list[float] = []
        peak = self._measurement.peak_memory(lambda: first.append(self._first_call()))
        if self._hosted.checked is not None and isinstance(content, Content):
            self._first = FirstOutputs(content, seed, lambda call: self.timer.batch(call, 1))
            self._first.keep(self._hosted.checked)
        return Loaded(
            setup_seconds=loaded - start,
            first_call_seconds=first[0],
            first_peak=peak,
            facts=self.timer.facts(),
        )

    def _first_call(self) -> float:
        start = time.perf_counter()
        self.timer.batch(self.call, 1)
        return time.perf_counter() - start

    def _calibrate(self, command: Calibrate) -> Answer:
        began = time.perf_counter()
        self.timer.settle(self.call, command.warmup_seconds)
        launching = self.timer.host_seconds(self.call, LAUNCHES)
        self._record(launching)
        calls, seconds = self._calls_of(self.timer.batch, command.batch_seconds)
        drift, batch_seconds = self._warm_up(calls, seconds, began + command.warmup_seconds_at_most)
        if batch_seconds < SHRUNK * command.batch_seconds:
            calls, seconds = self._calls_of(self.timer.batch, command.batch_seconds, calls)
        straight = None
        if command.straight:
            # A warm cache makes them shorter than those that each find a cold one.
            straight, _ = self._calls_of(self.timer.straight, command.batch_seconds, calls)
        return Calibrated(
            calls=calls,
            call_seconds=seconds,
            straight_calls=straight,
            warmup_seconds=time.perf_counter() - began,
            drift=drift,
            host_seconds=launching if self._is_graph else self._host_seconds(calls),
            launch=None if launching is None else "graph" if self._is_graph else "stream",
        )

    def _record(self, launching: float | None) -> None:
        """As a graph, where the settings say so: otherwise the times of short calls are those of launches.

        `launching`: seconds of the host for one call; None if the host is the device.
        """
        use = self._set_up.cuda_graph
        if not self._has_graphs or launching is None or use == "never":
            return
        hidden = LONG_LAUNCHES * launching * LAUNCHES
        if use == "short_calls" and self.timer.straight(self.call, LAUNCHES) > hidden:
            return
        try:
            self.call = self.timer.recorded(self.call)
        except CannotRecord:
            if use == "always":
                raise
            return
        self._is_graph = True
        self.timer.settle(self.call, 0.0)

    def _calls_of(
        self, batch: Callable[[Call, int], float], batch_seconds: float, calls: int = 1
    ) -> tuple[int, float]:
        """How many calls, at least so many, make a batch, and what one of them takes."""
        together = self.call.calls if isinstance(self.call, RecordedCall) else 1
        while True:
            calls = together * math.ceil(calls / together)
            # The faster of two: a batch that something disturbed would be taken for a long one.
            seconds = min(batch(self.call, calls) for _ in range(2))
            if seconds >= batch_seconds or calls >= MOST_CALLS:
                return calls, seconds / calls
            # Aim a little beyond the goal, in steps that one slow call cannot make absurd.
            growth = 1.2 * batch_seconds / max(seconds, 1e-9)
            calls = min(MOST_CALLS, max(calls + 1, int(calls * min(growth, 100.0))))

    def _warm_up(self, calls: int, call_seconds: float, end: float) -> tuple[float | None, float]:
        """Untimed batches until they do not drift any more.

        The drift, where that does not happen in time, and what a batch takes at last.
        """
        if call_seconds > LONG_CALL:
            return None, self.timer.batch(self.call, calls)  # once more: a load may have made it look so long
        while True:
            window = [self.timer.batch(self.call, calls) for _ in range(WINDOW)]
            drift = statistics.drift(window)
            if drift is None or time.perf_counter() > end:
                return drift, min(window)

    def _host_seconds(self, calls: int) -> float | None:
        """The fewest of some batches: what disturbs the host only adds."""
        host = self._hosted.host
        if host is None:
            return self.timer.host_seconds(self.call, calls)
        clock = time.perf_counter_ns
        found = []
        for _ in range(HOST_BATCHES):
            start = clock()
            for _ in range(HOST_CALLS):
                host()
            found.append((clock() - start) * 1e-9 / HOST_CALLS)
        return min(found)

    def _prepare(self, seconds: float | None) -> Answer:
        if not self._is_graph:  # a graph has its tensors' addresses in it, and they stay
            self.call = self._hosted.bind()
        if seconds is not None:
            self.timer.settle(self.call, seconds)
        return Prepared()

    def _call_again(self) -> Answer:
        replaced = self._integrity.changes() if self._integrity else ()
        if replaced:
            return _tampered(replaced)
        for bind in self._checked():
            changed = None if self._first is None else self._first.difference(bind)
            if changed is not None:
                return Refused(reason=changed, why="changed")
        return Unchanged()

    def _checked(self) -> tuple[Callable[[], Call], ...]:
        """What has to give what the first call gave: a graph may hold less than the call that it is of."""
        if self._hosted.checked is None:
            return ()
        call = self.call
        if not isinstance(call, RecordedCall) or not self._hosted.writes:
            return (self._hosted.checked,)
        return (self._hosted.checked, lambda: call, lambda: call.several)

    def _sample(self, command: Sample) -> Answer:
        from pipeline.measure.hosting.sampled_outputs import sampled

        content = self._model_content()
        content.refill(command.seed)
        call, last = self._hosted.bind(), [None]

        def keep() -> None:
            last[0] = call()  # type: ignore[call-overload]

        self.timer.batch(keep, command.calls)
        self._device.synchronize()
        return sampled(last[0], command.seed)

    def _repeat(self, seed: int) -> Answer:
        content, numbers = self._model_content(), random.Random(seed)
        call = self._hosted.bind()
        fresh: list[float] = []
        seen: list[float] = []
        for _ in range(REPEATED if content.can_touch() else 0):
            for other, seconds in ((True, fresh), (False, seen)):
                content.touch(numbers, other=other)
                self._device.synchronize()
                seconds.append(self.timer.straight(call, 1))
            if sum(fresh) + sum(seen) > REPEATED_SECONDS:
                break
        return Repeated(fresh=tuple(fresh), seen=tuple(seen))

    def _count(self, seed: int) -> Answer:
        from pipeline.measure.hosting.dispatched_operators import dispatched_work
        from pipeline.measure.hosting.model_hosting import bound, load_model

        assert isinstance(self._set_up.hosted, HostedModel)
        content = self._model_content()
        content.renew(seed)
        loaded = load_model(self._set_up.hosted, content, self._device)
        leaves = [*content.tensors(), *loaded.weights]
        return dispatched_work(bound(loaded, content), leaves, lambda: content.refill(seed + 1))

    def _model_content(self) -> "ModelContent":
        content = self._tensors()
        assert not isinstance(content, Content)
        return content

    def _examine(self, command: Examine) -> Answer:
        def batch(calls: int) -> float:
            return self.timer.batch(self.call, calls)

        return examine(batch, command.calls, self._measurement, command.energy_seconds)

    def _run(self, command: Go) -> Answer:
        lead = self.timer.batch(self.call, command.lead) if command.lead else 0.0
        # Now, as the batch binds the clock that it reads at its end.
        if self._integrity is not None and self._integrity.clock_changed():
            return _tampered(self._integrity.changes())
        if command.gaps:
            latencies = self.timer.latencies(self.call, command.gaps)
            return Ran(seconds=sum(latencies), latencies=latencies)
        batch = self.timer.straight if command.straight else self.timer.batch
        return Ran(seconds=batch(self.call, command.calls), lead_seconds=lead)


def _tampered(replaced: Sequence[str]) -> Refused:
    more = f" and {len(replaced) - 1} more" if len(replaced) > 1 else ""
    return Refused(reason=f"{replaced[0]}{more}: it is timed with that", why="tampered")


def _limit_memory() -> None:
    """A limit of the kernel's: the sandbox's would look at this process again and again while it is timed."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


_CAUSES: dict[Meaning | None, RefusalCause] = {
    "out of memory": "out_of_memory",
    "illegal address": "out_of_bounds",
    "unavailable": "device_unavailable",
}


def _cause(error: Exception) -> RefusalCause:
    """torch reports a failed allocation as a RuntimeError."""
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return "out_of_memory"
    return _CAUSES.get(meaning(str(error)), "raised")


def _one_line(error: Exception) -> str:
    """What a table has room for; of a compiler's output the line that says what is wrong."""
    wrong = [line for line in str(error).splitlines() if re.search(r"\berror: ", line)]
    text = " ".join((wrong[0] if wrong else str(error)).split()) or type(error).__name__
    return text[-300:] if wrong else text[:300]


def _not_loaded() -> Call:
    raise RuntimeError("this measuring child has loaded nothing")
