"""A session with a candidate's process, on the judge's own clock.

In: a candidate's file, shared memory, limits. Out: its answers; however the process ends becomes a `Failure`.
"""

import contextlib
import math
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.sandbox.processes.fork_server import ChildEnded, ForkServer, Limits, shared_path
from pipeline.sandbox.processes.scheduling_delay import waited
from pipeline.verify.harness.buffers import Arena
from pipeline.verify.harness.in_place.session import exit_failure
from pipeline.verify.harness.messages import (
    Answer,
    CallReply,
    CallRequest,
    ConstructRequest,
    LoadRequest,
    ReadyReply,
    RefusedReply,
    Where,
)

TARGET = "pipeline.verify.harness.conventions.outputs_returned:serve"
PRELOAD = ("numpy", "torch", "triton", "pipeline.verify.harness.conventions.outputs_returned")
BUILD_SECONDS = 300.0  # for compiling an extension against PyTorch's headers on a busy machine
BUILD_OUTPUT = 1 << 30  # bytes of any file that a compiler writes
_BUILDS = ("cpp_extension", "load_inline", "g++", "gcc", "nvcc", "nvrtc", "clang", "c++")
_CALLS_AT_LEAST = 3
_BACKSTOP = 4.0  # times the limit: the sandbox's own clock counts the judge's time as well


class ProcessEnded(Exception):
    """The candidate's process is gone."""

    def __init__(self, failure: Failure, signal: int | None = None) -> None:
        super().__init__(failure.reason)
        self.failure = failure
        self.signal = signal


class TrialSubject(Record, frozen=True, kw_only=True):
    """A candidate and how its process runs."""

    source: str
    """Absolute path of the candidate's file."""
    text: str
    where: Where
    limits: dict[str, int]
    """Of the hardware target that it is shown; empty: none."""
    settings: Verify

    @property
    def builds(self) -> bool:
        """Whether it may run a compiler, whose time does not count as the candidate's own."""
        return any(word in self.text for word in _BUILDS)


class Session:
    """One process of one candidate; a context manager, which ends it."""

    def __init__(
        self, server: ForkServer, subject: TrialSubject, arena: Arena, *, log: Path, scratch: Path
    ) -> None:
        self._subject = subject
        self._arena = arena
        settings = subject.settings
        self._limit = settings.time_limit + (BUILD_SECONDS if subject.builds else 0.0)
        self._left = self._limit
        self.seconds = 0.0
        self._excused = False
        self._process = 0
        self._child = server.start(
            TARGET,
            limits=Limits(
                seconds=_BACKSTOP * self._limit,
                memory=settings.memory_limit + arena.size if subject.where != "cuda" else None,
                output=max(settings.output_limit, BUILD_OUTPUT if subject.builds else 0),
            ),
            log=log,
            scratch=scratch,
            shared=[arena.descriptor],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ChildEnded):
            self._child.stop()

    @property
    def left(self) -> float:
        """Seconds that the candidate has left."""
        return self._left

    def load(self) -> ReadyReply | RefusedReply:
        """Import the candidate."""
        subject = self._subject
        message = LoadRequest(
            source=subject.source,
            arena=shared_path(0),
            size=self._arena.size,
            where=subject.where,
            limits=subject.limits,
        )
        answer = self._expect_ready(self._ask(message, "while it was imported"))
        self._process = answer.process if isinstance(answer, ReadyReply) else 0
        return answer

    def construct(self, message: ConstructRequest, when: str) -> ReadyReply | RefusedReply:
        """Make a new ModelNew."""
        return self._expect_ready(self._ask(message, when))

    def call(self, message: CallRequest, when: str) -> CallReply | RefusedReply:
        """Call forward; who cannot be called some times in the time that there is need not go on."""
        answer = self._ask(message, when, at_most=self._limit / _CALLS_AT_LEAST)
        if isinstance(answer, ReadyReply):
            raise _out_of_turn("ReadyReply", when)
        if answer.nonce != message.nonce:
            raise _out_of_turn("an answer to another call", when)
        return answer

    def allow(self, seconds: float) -> None:
        """Let it take so many seconds from now on, in one call if need be."""
        self._left = seconds
        self._limit = _CALLS_AT_LEAST * seconds

    def excuse(self) -> None:
        """Ignore how the process ends: it was called in a way that may crash any candidate."""
        self._excused = True

    def finish(self) -> Failure | None:
        """End the process; how it ended where that was not in order."""
        try:
            ended = self._child.stop()
        except ChildEnded as ending:
            ended = ending.exit
        return None if ended.kind == "ok" or self._excused else exit_failure(ended, "after the last call")

    def _expect_ready(self, answer: Answer) -> ReadyReply | RefusedReply:
        if isinstance(answer, CallReply):
            raise _out_of_turn("CallReply", "")
        return answer

    def _ask(
        self, message: LoadRequest | ConstructRequest | CallRequest, when: str, at_most: float = math.inf
    ) -> Answer:
        limit = max(min(self._left, at_most), 0.0)
        started, waited_before = time.monotonic(), self._waited()

        def own() -> float:
            return time.monotonic() - started - (self._waited() - waited_before)

        try:
            self._child.send(message)
            answer: Answer = self._child.receive(limit, Answer, more=lambda: limit - own())
        except ChildEnded as ended:
            if ended.exit.kind == "timeout":
                reason = f"not finished after {limit:.3g} s of its own time ({when})"
                raise ProcessEnded(Failure(outcome=Outcome.TIMEOUT, reason=reason)) from ended
            raise ProcessEnded(exit_failure(ended.exit, when), -min(ended.exit.code, 0)) from ended
        finally:
            spent = own()
            self._left -= spent
            self.seconds += spent
        return answer

    def _waited(self) -> float:
        """Seconds in which it waited for a core: on a busy machine they pass, and are not its own."""
        return waited(self._process) if self._process else 0.0


def _out_of_turn(what: str, when: str) -> ProcessEnded:
    reason = f"its process sent {what} out of turn ({when})".replace(" ()", "")
    return ProcessEnded(Failure(outcome=Outcome.TAMPERED, reason=reason))
