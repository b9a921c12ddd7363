"""A session with a candidate's process, on the judge's own clock.

In: what is tried, shared memory, limits. Out: its answers; however the process ends becomes a `Failure`.
"""

import contextlib
import functools
import math
import os
import re
import signal
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from pipeline.backends.devices.device import MemoryChecker
from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.sandbox.confinement.confine import TRITON_CACHE
from pipeline.sandbox.processes.child_session import EXIT_OUTCOMES, ChildSession
from pipeline.sandbox.processes.fork_server import (
    UNEXPECTED,
    ChildEnded,
    Exit,
    ForkServer,
    Limits,
    shared_path,
)
from pipeline.verify.harness.buffers import Arena
from pipeline.verify.harness.messages import (
    Answer,
    CallReply,
    CallRequest,
    ConfinedReply,
    ConstructRequest,
    DeclaredKernel,
    LoadRequest,
    ModelFile,
    ReadyReply,
    RefusedReply,
)

TARGET = "pipeline.verify.harness.process:serve"
CHECKED_TARGET = "pipeline.verify.harness.process:start_checked"
BUILD_SECONDS = 300.0  # for compiling an extension against PyTorch's headers on a busy machine
BUILD_OUTPUT = 1 << 30  # bytes of any file that a compiler writes
DEVICE_CANDIDATES = 4  # at once on one device: each has a context there, which takes hundreds of MB
_CALLS_AT_LEAST = 3
_BACKSTOP = 4.0  # times the limit: the sandbox's own clock counts the judge's time as well
_CHECKED_MEMORY = 4 << 30  # bytes of address space: PyTorch, which other processes have from their parent
_WHILE_LOADED = "while it was loaded"
A = TypeVar("A", bound=Record)
ENDING = ("SystemExit", "KeyboardInterrupt", "GeneratorExit")
"""Exceptions by which a candidate ends its process."""


class TrialSubject(Record, frozen=True, kw_only=True):
    """What is tried, and how its process runs."""

    candidate: DeclaredKernel | ModelFile
    settings: Verify
    builds: bool = False
    """Whether it may run a compiler, whose time does not count as the candidate's own."""

    @property
    def on_host(self) -> bool:
        """Whether it runs on the CPU."""
        return executes_on_host(self.candidate.device)


class ModelSubject(TrialSubject, frozen=True, kw_only=True):
    """A model that is tried."""

    candidate: ModelFile
    has_backward: bool = False
    """Whether it computes gradients itself."""


def time_allowed(settings: Verify, *, builds: bool) -> str:
    """What a candidate may take, for who waits for it; `builds`: some may run a compiler."""
    limit = settings.time_limit
    text = f"{limit:g} s of its own time (verify.time_limit), {limit / _CALLS_AT_LEAST:g} s in one call"
    if not builds:
        return text
    longer = limit + BUILD_SECONDS
    return f"{text}; {longer:g} s and {longer / _CALLS_AT_LEAST:g} s if it may build an extension"


class ProcessEnded(Exception):
    """The candidate's process is gone."""

    def __init__(self, failure: Failure, number: int | None = None, *, allowed: float = math.inf) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.allowed = allowed
        """Seconds that it had for what it did last."""
        self.touched_memory = number in (signal.SIGSEGV, signal.SIGBUS)
        """Whether it touched memory that it must not."""


class Session:
    """One process of one candidate; a context manager, which ends it."""

    def __init__(  # noqa: PLR0913  (each of them is a property of one process)
        self,
        server: ForkServer,
        subject: TrialSubject,
        arena: Arena,
        *,
        log: Path,
        scratch: Path,
        checker: MemoryChecker | None = None,
    ) -> None:
        """`checker`: what its process runs under, which takes much longer."""
        self.arena = arena
        self.isolation: tuple[str, ...] = ()
        """What confines the process."""
        self.peak_memory = 0
        """Bytes of the process that were resident at most, once it has ended."""
        self._subject = subject
        settings = subject.settings
        self._limit = settings.time_limit + (BUILD_SECONDS if subject.builds or checker else 0.0)
        self._allowance = f"verify.time_limit={settings.time_limit:g}"
        """Where its seconds come from, in words."""
        if self._limit > settings.time_limit:
            why = "for what it builds" if subject.builds else "under a tool that is slower"
            self._allowance = f"{self._limit:g} s ({self._allowance}, and {BUILD_SECONDS:g} s more {why})"
        self.crashed = False
        """Whether a signal that it got for what it did has ended it."""
        self.excused = False
        """Whether it is ignored how the process ends, which it may have done already."""
        memory = settings.memory_limit + arena.size + (_CHECKED_MEMORY if checker else 0)
        compile_seconds = 0.0 if subject.on_host else BUILD_SECONDS  # an autotuner has many to compile
        child = server.start(
            TARGET if checker is None else CHECKED_TARGET,
            limits=Limits(
                seconds=_BACKSTOP * self._limit + compile_seconds,
                # A CUDA context reserves more address space than any limit on it would let pass.
                memory=memory if subject.on_host else None,
                output=max(settings.output_limit, BUILD_OUTPUT if subject.builds else 0),
            ),
            log=log,
            environment={} if checker is None else checker.environment,
            scratch=scratch,
            shared=[arena.descriptor],
        )
        if checker is not None:
            child.send(checker.command)
        self._child = ChildSession(
            child,
            Answer,
            seconds=self._limit,
            compiled=functools.partial(_last_binary, scratch),
            compile_seconds=compile_seconds,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ChildEnded):
            self.peak_memory = self._child.stop().peak_memory

    @property
    def left(self) -> float:
        """Seconds that the candidate has left."""
        return self._child.left

    @property
    def seconds(self) -> float:
        """Seconds of its own time that the candidate has taken."""
        return self._child.spent

    def load(self) -> ReadyReply | RefusedReply:
        """Have the candidate loaded, in a process that was confined before."""
        message = LoadRequest(candidate=self._subject.candidate, arena=shared_path(0), size=self.arena.size)
        confined = self._expect(ConfinedReply, message, _WHILE_LOADED)
        if isinstance(confined, RefusedReply):
            return confined
        self.isolation, self._child.process = confined.isolation, confined.process
        return self._expect(ReadyReply, None, _WHILE_LOADED)

    def construct(self, message: ConstructRequest, when: str) -> ReadyReply | RefusedReply:
        """Make a new ModelNew."""
        return self._expect(ReadyReply, message, when)

    def call(self, message: CallRequest, when: str) -> CallReply | RefusedReply:
        """Call it; who cannot be called some times in the time that there is need not go on."""
        answer = self._expect(CallReply, message, when, at_most=self._limit / _CALLS_AT_LEAST)
        if answer.nonce != message.nonce:
            raise _out_of_turn("an answer to another call", when)
        return answer

    def allow(self, seconds: float) -> None:
        """Let it take so many seconds from now on, in one call if need be."""
        self._child.left = seconds
        self._limit = _CALLS_AT_LEAST * seconds
        self._allowance = f"{self._limit:g} s"

    def excuse(self) -> None:
        """Ignore how the process ends: it was called in a way that may crash any candidate."""
        self.excused = True

    def finish(self) -> Failure | None:
        """End the process; how it ended where that was not in order."""
        try:
            ended = self._child.stop()
        except ChildEnded as ending:
            ended = ending.exit
        return None if ended.kind == "ok" or self.excused else exit_failure(ended, "after the last call")

    def _expect(
        self, kind: type[A], message: object, when: str, *, at_most: float = math.inf
    ) -> A | RefusedReply:
        limit = max(min(self._child.left, at_most), 0.0)
        try:
            answer = self._child.ask(message, at_most=at_most)
        except ChildEnded as ended:
            if ended.exit.kind == "timeout":
                reason = f"not finished after {limit:.3g} s of its own time{self._share(limit)} ({when})"
                failure = Failure(outcome=Outcome.TIMEOUT, reason=reason)
                raise ProcessEnded(failure, allowed=limit) from ended
            self.crashed = ended.exit.kind == "crashed"
            raise ProcessEnded(exit_failure(ended.exit, when), -min(ended.exit.code, 0)) from ended
        if isinstance(answer, kind | RefusedReply):
            return answer
        raise _out_of_turn(type(answer).__name__, when)

    def _share(self, limit: float) -> str:
        """What of the seconds of all calls these are."""
        if limit == self._limit / _CALLS_AT_LEAST:
            return f": one call may take a third of {self._allowance}"
        return f": what was left of {self._allowance}"


def _last_binary(scratch: Path) -> float:
    """When Triton finished the last one (`time.time`); 0 if there is none."""
    with contextlib.suppress(FileNotFoundError), os.scandir(scratch / TRITON_CACHE) as found:
        return max((entry.stat().st_mtime for entry in found), default=0.0)
    return 0.0


def exit_failure(ended: Exit, when: str) -> Failure:
    """The failure of a process that is gone before its last answer was read."""
    if ended.detail.startswith(UNEXPECTED):
        return Failure(outcome=Outcome.TAMPERED, reason=f"its process sent an {ended.detail} ({when})")
    reason = ended.detail or "its process ended without an answer"
    return Failure(outcome=EXIT_OUTCOMES[ended.kind], reason=f"{reason} ({when})")


def refusal(answer: RefusedReply, label: str) -> Failure:
    """What an exception means where none was allowed; `label`: in which call, or nothing."""
    where = f" ({label})" if label else ""
    if _REACHES_OUT.search(answer.reason):
        outcome = Outcome.TAMPERED
    elif answer.error in ENDING:
        outcome = Outcome.CRASHED
    elif answer.error == "DeviceUnavailable":
        outcome = Outcome.DEVICE_UNAVAILABLE
    elif answer.error == "IllegalAddress":
        outcome = Outcome.OUT_OF_BOUNDS
    elif answer.error == "MemoryError":
        outcome = Outcome.OUT_OF_MEMORY
    elif answer.stage in ("import", "build"):
        outcome = Outcome.COMPILE_ERROR
    else:
        outcome = Outcome.LAUNCH_ERROR
    return Failure(outcome=outcome, reason=f"{answer.reason or answer.error}{where}"[:500])


_REACHES_OUT = re.compile(r"Errno (1|13|30)\].*\'/proc/")
"""What confinement says to who writes to the memory or to the settings of processes."""


def _out_of_turn(what: str, when: str) -> ProcessEnded:
    reason = f"its process sent {what} out of turn ({when})"
    return ProcessEnded(Failure(outcome=Outcome.TAMPERED, reason=reason))
