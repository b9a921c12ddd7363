"""A session with a candidate's process, on a clock that counts only the candidate's own time.

In: the subject of the trial (what to load, and how its process runs), calls. Out: answers as plain values, or
ChildEnded, whose `Exit` says how the process ended.
"""

import time
from pathlib import Path
from typing import Literal

from pipeline.backends.backend import CompileJob
from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.records.results.compiled import Compiled
from pipeline.sandbox.processes.fork_server import (
    UNEXPECTED,
    ChildEnded,
    Exit,
    ForkServer,
    Limits,
    shared_path,
)
from pipeline.sandbox.processes.scheduling_delay import waited
from pipeline.verify.harness.buffers import Arena
from pipeline.verify.harness.conventions.outputs_given import TARGET
from pipeline.verify.harness.in_place.messages import (
    Answer,
    CallReply,
    CallRequest,
    ConfinedReply,
    LoadRequest,
    ReadyReply,
    RefusedReply,
)


class TrialSubject(Record, frozen=True, kw_only=True):
    """What is tried, and how its process runs."""

    job: CompileJob
    compiled: Compiled
    root: str
    """The repository."""
    folder: str
    """The store entry that compile left."""
    device: DeviceKind
    threads: int
    """Of every third case; the others run on one, because threads that wait for each other on busy cores are
    what costs most."""
    repeat: Literal["every", "first"]
    """Which cases are called on equal inputs again."""
    deterministic: bool
    settings: Verify


BACKSTOP = 4.0  # times the limit: the sandbox's own clock counts the judge's time as well


class Session:
    """One candidate's process, from its start to its end."""

    def __init__(
        self, server: ForkServer, subject: TrialSubject, arena: Arena, *, log: Path, scratch: Path
    ) -> None:
        self.arena = arena
        self.isolation: tuple[str, ...] = ()
        self._process: int | None = None
        self._subject = subject
        settings = subject.settings
        self._limit = self._left = settings.time_limit
        limits = Limits(
            seconds=BACKSTOP * settings.time_limit,
            # A CUDA context reserves more address space than any limit on it would let pass.
            memory=settings.memory_limit + arena.size if executes_on_host(subject.device) else None,
            output=settings.output_limit,
        )
        self._child = server.start(TARGET, limits=limits, log=log, scratch=scratch, shared=[arena.descriptor])

    def load(self) -> Failure | None:
        """Have the artifact loaded, in a process that was confined before."""
        subject = self._subject
        message = LoadRequest(
            job=subject.job,
            compiled=subject.compiled,
            root=subject.root,
            folder=subject.folder,
            arena=shared_path(0),
            size=self.arena.size,
            device=subject.device,
            threads=subject.threads,
        )
        answer = self._ask(message)
        if not isinstance(answer, ConfinedReply):
            return _unexpected(answer)
        self.isolation, self._process = answer.isolation, answer.process
        answer = self._ask(None)
        return None if isinstance(answer, ReadyReply) else _unexpected(answer)

    def call(self, call: CallRequest) -> CallReply | Failure:
        """Have it launched once."""
        answer = self._ask(call)
        return answer if isinstance(answer, CallReply) else _unexpected(answer)

    def stop(self) -> Exit:
        """End the process; how it ended."""
        return self._child.stop()

    def _ask(self, message: LoadRequest | CallRequest | None) -> Answer:
        started, waited_before = time.monotonic(), self._waited()

        def more() -> float:
            """The candidate gets the time in which it waited for a core, up to the sandbox's own limit."""
            own = time.monotonic() - started - (self._waited() - waited_before)
            return self._left - own

        try:
            if message is not None:
                self._child.send(message)
            answer: Answer = self._child.receive(max(self._left, 0.0), Answer, more=more)
        except ChildEnded as ended:
            if ended.exit.kind != "timeout":
                raise
            limit = f"not finished after {self._limit:g} s of its own time, all calls together"
            raise ChildEnded(Exit(kind="timeout", code=ended.exit.code, detail=limit)) from ended
        self._left = more()
        return answer

    def _waited(self) -> float:
        return 0.0 if self._process is None else waited(self._process)


def exit_failure(ended: Exit, when: str) -> Failure:
    """The failure of a process that is gone before its last answer was read."""
    if ended.detail.startswith(UNEXPECTED):
        return Failure(outcome=Outcome.TAMPERED, reason=f"its process sent an {ended.detail} ({when})")
    reason = ended.detail or "its process ended without an answer"
    return Failure(outcome=_OUTCOMES[ended.kind], reason=f"{reason} ({when})")


def _unexpected(answer: Answer) -> Failure:
    if isinstance(answer, RefusedReply):
        return Failure(outcome=Outcome.LAUNCH_ERROR, reason=answer.reason)
    return Failure(
        outcome=Outcome.TAMPERED, reason=f"its process answered {type(answer).__name__} out of turn"
    )


_OUTCOMES = {
    "ok": Outcome.CRASHED,
    "error": Outcome.CRASHED,
    "crashed": Outcome.CRASHED,
    "timeout": Outcome.TIMEOUT,
    "out_of_memory": Outcome.OUT_OF_MEMORY,
    "output_limit": Outcome.OUTPUT_LIMIT,
    "process_limit": Outcome.TAMPERED,
}
