"""One measuring child as its coordinator sees it: asked in turn, stopped in between, its clock checked."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pipeline.backends.devices.device_registry import device
from pipeline.measure.hosting.call_costs import Examined
from pipeline.measure.hosting.measuring_messages import (
    Answer,
    Calibrate,
    Calibrated,
    CallAgain,
    Command,
    Count,
    DispatchedWork,
    Examine,
    Go,
    HostedModel,
    Load,
    Loaded,
    Prepare,
    Prepared,
    Ran,
    Ready,
    Refused,
    Repeat,
    Repeated,
    Sample,
    Sampled,
    SetUp,
    Unchanged,
)
from pipeline.measure.hosting.measuring_process import LONG_CALL, TARGET
from pipeline.measure.hosting.timed_batch import LEAD_SHARE, Batch, account_of, credible_lead, settle_seconds
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.stage_settings import Profile
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record
from pipeline.sandbox.processes import machine_resources
from pipeline.sandbox.processes.child_session import EXIT_OUTCOMES, ChildSession
from pipeline.sandbox.processes.fork_server import ChildEnded, Exit, ForkServer, Limits
from pipeline.sandbox.processes.scheduling_delay import waited_here

READY_SECONDS = 60.0  # from the fork to the first answer, torch imported where it was not yet
OUTPUT = 16 << 20
SAMPLED_CALLS = 100
"""In the batch whose last result is looked at, at most."""
SERVER_CALLS = 8  # in one batch, each after an idle gap
LONGEST_GAP = 5.0  # times the mean: an exponential tail has no end, a budget has

A = TypeVar("A", bound=Record)


class MemberGone(Exception):
    """This callable cannot be measured any more: it refused, its process ended, or its clock is false."""

    def __init__(self, name: str, outcome: Outcome, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.outcome = outcome
        self.reason = reason


class MeasuringBug(RuntimeError):
    """The measuring child itself raised: a bug of the pipeline, which stops the job."""


class Place(Record, frozen=True, kw_only=True):
    """Where a child runs and what it may use."""

    log: Path
    environment: dict[str, str]
    lifetime: float
    """Seconds from its start to its end."""
    patience: float
    """Seconds that it may take for one answer."""
    output: int = OUTPUT
    """Bytes of any file that it writes, its log included."""
    scratch: Path | None = None
    """Its working folder; for a source that somebody wrote all that it may write to."""


class Member:
    """A callable that takes part in the rounds.

    Its process runs only during its turn: between turns it is stopped (SIGSTOP), with all its threads. So
    neither workers that spin after a parallel region nor a kernel that works on in the background can
    disturb the process that is being timed, or profit at its expense.
    """

    def __init__(self, name: str, server: ForkServer, set_up: SetUp, place: Place) -> None:
        self.name = name
        self.calls = 1
        self.call_seconds = 0.0
        self.loaded: Loaded | None = None
        self.calibrated: Calibrated | None = None
        self._idle = 0.0
        self._place = place
        self.kind: DeviceKind = set_up.kind
        self.is_model = isinstance(set_up.hosted, HostedModel)
        self.first: Sampled | None = None
        """Of a model: what one of its first calls returned, on the content of the seed of `load`."""
        self._on_host = device(set_up.kind).is_host
        self._process: int | None = None
        child = server.start(
            TARGET,
            limits=Limits(seconds=place.lifetime, output=place.output),
            log=place.log,
            environment=place.environment,
            scratch=place.scratch,
        )
        with contextlib.suppress(ChildEnded):  # told when it is asked
            child.send(set_up)
        # Its process stays unknown to the session: nothing of ours may run while it is timed.
        self._session = ChildSession(child, Answer)

    def load(self, seed: int, settings: Profile) -> Loaded:
        """Wait until it is ready, load it, call it, warm up, and choose the calls per batch.

        Raises
        ------
        MemberGone
            It refused, crashed, or took too long; the same for `batch`.
        """
        self._begin()
        with self._turn():
            self.loaded = self._ask(Load(seed=seed), Loaded, self._place.patience)
            if self.is_model:  # before the many calls by which a candidate could know that it is timed
                self.first = self._ask(Sample(seed=seed, calls=1), Sampled, self._place.patience)
            command = Calibrate(
                warmup_seconds=settings.warmup_seconds,
                warmup_seconds_at_most=settings.warmup_seconds_at_most,
                batch_seconds=settings.batch_seconds,
                straight=settings.mode == "server" or settings.flush_cache,
            )
            self.calibrated = self._ask(command, Calibrated, self._place.patience)
        self.call_seconds = self.calibrated.call_seconds
        self.calls = self.calibrated.calls
        if settings.mode == "server":
            self.calls, self._idle = SERVER_CALLS, settings.idle_seconds
        return self.loaded

    @property
    def _lead(self) -> int:
        """Calls before the timed ones; none where calls are long or come one by one."""
        brief = self.call_seconds < LONG_CALL and not self._idle
        return max(1, round(LEAD_SHARE * self.calls)) if brief else 0

    def batch(self, seed: int, *, others: int = 1) -> Batch:
        """Fresh content, some untimed calls, then the timed ones under an outside clock as well.

        `others`: how many members had the device since its last batch.
        """
        gaps = gaps_of(seed, self.calls, self._idle) if self._idle else ()
        alone = not others and self._on_host
        prepare = Prepare(seed=seed, settle_seconds=settle_seconds(self.call_seconds, alone=alone))
        with self._turn():
            self._ask(prepare, Prepared, self._place.patience)
            return self._go(Go(calls=self.calls, lead=self._lead, gaps=gaps))

    def straight(self) -> Batch | None:
        """Calls back to back, to check its clock by; None where the timed batches are such themselves."""
        if self.calibrated is None or self.calibrated.straight_calls is None:
            return None
        with self._turn():
            return self._go(Go(calls=self.calibrated.straight_calls, straight=True))

    def _go(self, go: Go) -> Batch:
        """Timed by its clock, and accounted for by ours and the kernel's."""
        before, ours, asking = account_of(self._process), waited_here(), time.thread_time()
        start = time.perf_counter()
        ran = self._ask(go, Ran, self._place.patience)
        outside = time.perf_counter() - start - sum(go.gaps)
        ours = waited_here() - ours
        asking = time.thread_time() - asking
        after = account_of(self._process)
        seconds = ran.seconds
        if not 0 < seconds <= outside - ran.lead_seconds <= outside:
            self.stop()
            reason = f"its clock says {seconds + ran.lead_seconds:g} s for a batch that took {outside:g} s"
            raise MemberGone(self.name, Outcome.TAMPERED, reason)
        queued = after.queued - before.queued
        lead = credible_lead(ran, share=go.lead / go.calls, queued=queued)
        return Batch(
            calls=go.calls,
            seconds=seconds,
            unseen=max(0.0, outside - lead - seconds - ours),
            computed=max(0.0, after.computed - before.computed - lead),
            waited=max(0.0, after.waited - before.waited),
            queued=queued,
            coordinated=asking,
            latencies=ran.latencies,
        )

    def call_again(self) -> None:
        """See whether it still gives on its first inputs what it gave; nothing may be timed after it.

        Raises
        ------
        MemberGone
            Outcome `nondeterministic`: it does not. Outcome `tampered`: it replaced what it is timed with.
        """
        with self._turn():
            self._ask(CallAgain(), Unchanged, self._place.patience)

    def sample(self, seed: int) -> Sampled:
        """Elements of what a model returns in the last call of a batch on the content of a seed."""
        with self._turn():
            calls = min(self.calls, SAMPLED_CALLS)
            return self._ask(Sample(seed=seed, calls=calls), Sampled, self._place.patience)

    def repeat(self, seed: int) -> Repeated:
        """Times of a model on inputs with a few new elements, and on inputs that it has just seen."""
        with self._turn():
            return self._ask(Repeat(seed=seed), Repeated, self._place.patience)

    def count(self, seed: int) -> DispatchedWork:
        """What the operators of a model do, in place of `load`; nothing else may be asked of it."""
        self._begin()
        with self._turn():
            return self._ask(Count(seed=seed), DispatchedWork, self._place.patience)

    def _begin(self) -> None:
        """Wait until its process is ready."""
        self._process = self._ask(None, Ready, READY_SECONDS).process

    def examine(self, energy_seconds: float | None) -> Examined:
        """What a call costs besides time; the last that is asked of it."""
        with self._turn():
            return self._ask(
                Examine(calls=self.calls, energy_seconds=energy_seconds), Examined, self._place.patience
            )

    def cpu_seconds(self) -> float:
        """CPU time that its process has used; 0 where the platform does not tell."""
        try:
            fields = Path(f"/proc/{self._process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """End the process."""
        self._signal(signal.SIGCONT)
        self._process = None
        self._session.stop()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        self._signal(signal.SIGCONT)
        try:
            yield
        finally:
            self._signal(signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process, number)

    def _ask(self, command: Command | None, kind: type[A], seconds: float) -> A:
        """Its answer to a command; None: the one that it gives by itself."""
        try:
            answer = self._session.ask(command, at_most=seconds)
        except ChildEnded as ended:
            raise self._gone(ended) from ended
        if isinstance(answer, kind):
            return answer
        self.stop()
        if isinstance(answer, Refused):
            raise MemberGone(self.name, _REFUSALS[answer.why], answer.reason)
        raise MemberGone(self.name, Outcome.TAMPERED, f"it answered out of turn: {type(answer).__name__}")

    def _gone(self, ended: ChildEnded) -> MemberGone:
        self._process = None
        self._stop_on_bug(ended.exit)
        return MemberGone(self.name, EXIT_OUTCOMES[ended.exit.kind], _story(ended.exit))

    def _stop_on_bug(self, ended: Exit) -> None:
        """What a callable raises comes back as `Refused`: a traceback that ends the child is our own."""
        text = self._place.log.read_text(errors="replace") if self._place.log.is_file() else ""
        if ended.kind == "error" and "Traceback" in text:
            machine_resources.require(self._place.log.parent)
            raise MeasuringBug(f"{self.name}:\n{text}")


def gaps_of(seed: int, calls: int, mean: float) -> tuple[float, ...]:
    """Idle seconds before each call, the same for every member of a round."""
    numbers = random.Random(seed)
    return tuple(min(numbers.expovariate(1 / mean), LONGEST_GAP * mean) for _ in range(calls))


def _story(ended: Exit) -> str:
    return ended.detail or ("it ended without an answer" if ended.kind == "ok" else ended.kind)


_REFUSALS = {
    "raised": Outcome.LAUNCH_ERROR,
    "out_of_memory": Outcome.OUT_OF_MEMORY,
    "out_of_bounds": Outcome.OUT_OF_BOUNDS,
    "device_unavailable": Outcome.DEVICE_UNAVAILABLE,
    "changed": Outcome.NONDETERMINISTIC,
    "tampered": Outcome.TAMPERED,
}
