"""Try one variant: call it on every case in a child process of its own, and let the gate judge every call.

In: what to load, and the cases. Out: a `Trial`: passed with how much of the bound was used, or the first
failure.
"""

import tempfile
import time
from pathlib import Path
from typing import Literal

from pipeline.backends.backend import CompileJob
from pipeline.checks.buffers import AGAIN, ALIGNMENT, FIRST, Arena, Layout, lay_out
from pipeline.checks.candidate import TARGET, Answer, Call, Done, Load, Ready, Refused
from pipeline.checks.cases import Case, CaseBook, Prepared
from pipeline.checks.determinism import differing
from pipeline.checks.gate import Gate
from pipeline.checks.observation import Observation, Turn
from pipeline.checks.weak import summarize
from pipeline.records.compiled import Compiled
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.records.settings import Verify
from pipeline.records.verified import CheckResult, Verified
from pipeline.workers.sandbox import UNEXPECTED, Child, ChildEnded, Exit, ForkServer, Limits

SHIFT = 17 * ALIGNMENT  # bytes by which all addresses differ in the last call
BACKSTOP = 4.0  # times the limit: the sandbox's own clock counts the judge's time as well
LOG = "log.txt"
EVERY_THIRD = 3  # the cases that are called on several threads


class Subject(Record, frozen=True, kw_only=True):
    """What is tried, and how its process runs."""

    job: CompileJob
    compiled: Compiled
    root: str
    """The repository."""
    folder: str
    """The store entry that compile left."""
    device: Literal["cpu", "cuda"]
    threads: int
    """Of every third case; the others run on one, because threads that wait for each other on busy cores are
    what costs most."""
    repeat: Literal["every", "first"]
    """Which cases are called twice."""
    deterministic: bool
    settings: Verify


class Trial(Record, frozen=True, kw_only=True):
    """How it went."""

    result: Verified | Failure
    checks: tuple[CheckResult, ...]
    cases: tuple[Case, ...]
    """Those that were called, up to the failure."""


def try_variant(
    server: ForkServer, subject: Subject, book: CaseBook, cases: tuple[Case, ...], folder: Path
) -> Trial:
    """Judge one variant; the child's output goes to `log.txt` in `folder`."""
    # All expected values are computed before the child's clock starts, and never enter its process.
    steps = [_step(book.prepare(case), number, subject) for number, case in enumerate(cases)]
    size = max(step.layout.size for step in steps) + 2 * SHIFT
    gate = Gate()
    with Arena(size) as arena, tempfile.TemporaryDirectory(prefix="kernelmill-") as scratch:
        candidate = _Candidate(server, subject, arena, log=folder / LOG, scratch=Path(scratch))
        attempt = _Attempt(candidate, gate, subject)
        failure = _try(candidate, attempt, steps)
    tried = tuple(step.prepared.case for step in steps[: attempt.cases])
    if failure is not None:
        _conclude(folder / LOG, failure)
        failure = Failure(outcome=failure.outcome, reason=failure.reason, log=LOG)
        return Trial(result=failure, checks=gate.results(), cases=tried)
    gate.require_all(attempt.calls)
    weak = summarize({step.label: step.prepared.trivial for step in steps if not step.prepared.empty})
    verified = Verified(
        worst_share=gate.worst_share, worst_error=gate.worst_error, weak=weak.task, weak_cases=weak.cases
    )
    return Trial(result=verified, checks=gate.results(), cases=tried)


def _try(candidate: "_Candidate", attempt: "_Attempt", steps: list["_Step"]) -> Failure | None:
    """All calls; however it ends, the child does not outlive it."""
    try:
        failure = candidate.load() or attempt.run(steps)
        ended = candidate.stop()
    except ChildEnded as ending:
        return _how_it_ended(ending.exit, attempt.label)
    finally:
        candidate.stop()
    if failure is None and ended.kind != "ok":
        return _how_it_ended(ended, "after the last call")
    return failure


def _step(prepared: Prepared, number: int, subject: Subject) -> "_Step":
    layout = lay_out(prepared.problem, padded=prepared.case.shape.padded)
    return _Step(prepared=prepared, layout=layout, threads=1 if number % EVERY_THIRD else subject.threads)


def _conclude(log: Path, failure: Failure) -> None:
    """End the log with the verdict: a crash prints nothing itself, and a reader starts from the log."""
    with log.open("a") as stream:
        stream.write(f"\nverify: {failure.outcome}: {failure.reason}\n")


class _Candidate:
    """The child process, with a clock that counts only its own time."""

    def __init__(
        self, server: ForkServer, subject: Subject, arena: Arena, *, log: Path, scratch: Path
    ) -> None:
        self.arena = arena
        self._subject = subject
        settings = subject.settings
        self._limit = self._left = settings.time_limit
        limits = Limits(
            seconds=BACKSTOP * settings.time_limit,
            # A CUDA context reserves more address space than any limit on it would let pass.
            memory=settings.memory_limit + arena.size if subject.device == "cpu" else None,
            output=settings.output_limit,
        )
        self._child: Child = server.start(TARGET, limits=limits, log=log, scratch=scratch)

    def load(self) -> Failure | None:
        subject = self._subject
        message = Load(
            job=subject.job,
            compiled=subject.compiled,
            root=subject.root,
            folder=subject.folder,
            arena=self.arena.path,
            size=self.arena.size,
            device=subject.device,
        )
        answer = self._ask(message)
        if isinstance(answer, Ready):
            return None
        return _unexpected(answer)

    def call(self, step: "_Step") -> Done | Failure:
        answer = self._ask(Call(layout=step.layout, threads=step.threads))
        return answer if isinstance(answer, Done) else _unexpected(answer)

    def stop(self) -> Exit:
        return self._child.stop()

    def _ask(self, message: Load | Call) -> Answer:
        started = time.monotonic()
        try:
            self._child.send(message)
            answer: Answer = self._child.receive(max(self._left, 0.0), Answer)
        except ChildEnded as ended:
            if ended.exit.kind != "timeout":
                raise
            limit = f"not finished after {self._limit:g} s of its own time, all calls together"
            raise ChildEnded(Exit(kind="timeout", code=ended.exit.code, detail=limit)) from ended
        self._left -= time.monotonic() - started
        return answer


class _Step(Record, frozen=True, kw_only=True, eq=False):
    """One case as it is called."""

    prepared: Prepared
    layout: Layout
    threads: int

    @property
    def label(self) -> str:
        return self.prepared.case.label

    def moved(self) -> "_Step":
        """The same at other addresses."""
        layout = lay_out(self.prepared.problem, padded=self.prepared.case.shape.padded, shift=SHIFT)
        return _Step(prepared=self.prepared, layout=layout, threads=self.threads)


class _Attempt:
    """The order of the calls: cases, each or the first of them twice, then the first one elsewhere."""

    def __init__(self, candidate: _Candidate, gate: Gate, subject: Subject) -> None:
        self._candidate = candidate
        self._gate = gate
        self._deterministic = subject.deterministic
        self._repeat = subject.repeat
        self.calls = 0
        self.cases = 0
        self.label = "while it was loaded"

    def run(self, steps: list[_Step]) -> Failure | None:
        """Until the first failure; None where there was none."""
        earliest: Observation | None = None
        for step in steps:
            self.cases += 1
            first = self._call(step, "first", None)
            if isinstance(first, Failure):
                return first
            if earliest is None or self._repeat == "every":
                again = self._call(step, "again", first)
                if isinstance(again, Failure):
                    return again
            earliest = earliest or first
        elsewhere = self._call(steps[0].moved(), "elsewhere", earliest)
        return elsewhere if isinstance(elsewhere, Failure) else None

    def _call(self, step: _Step, turn: Turn, first: Observation | None) -> Observation | Failure:
        observation = self._observe(step, turn, first)
        if isinstance(observation, Failure):
            return observation
        self.calls += 1
        failure = self._gate.judge(observation)
        if failure is None:
            return observation
        if failure.outcome is Outcome.WRONG_VALUE:
            return self._consistent(step, observation, failure)
        return failure

    def _consistent(self, step: _Step, wrong: Observation, failure: Failure) -> Failure:
        """A wrong value that changes from call to call is a race or unset memory: another thing to fix."""
        again = self._observe(step, wrong.turn, None)
        if isinstance(again, Failure):
            return failure
        changed = sum(differing(output, wrong.outputs[name]) for name, output in again.outputs.items())
        if not changed:
            return failure
        reason = f"{changed} elements change between equal calls, and {failure.reason}"
        return Failure(outcome=Outcome.NONDETERMINISTIC, reason=reason)

    def _observe(self, step: _Step, turn: Turn, first: Observation | None) -> Observation | Failure:
        self.label = step.label
        patterns = AGAIN if turn == "again" else FIRST
        arena = self._candidate.arena
        arena.write(step.layout, step.prepared.inputs, patterns)
        done = self._candidate.call(step)
        if isinstance(done, Failure):
            return Failure(outcome=done.outcome, reason=f"{done.reason} ({step.label})")
        return Observation(
            prepared=step.prepared,
            deterministic=self._deterministic,
            turn=turn,
            arena=arena,
            layout=step.layout,
            patterns=patterns,
            seen=done.outputs,
            outputs={slot.name: arena.copy(slot) for slot in step.layout.slots if slot.role == "output"},
            first=None if first is None else first.outputs,
        )


def _unexpected(answer: Answer) -> Failure:
    if isinstance(answer, Refused):
        return Failure(outcome=Outcome.LAUNCH_ERROR, reason=answer.reason)
    return Failure(
        outcome=Outcome.TAMPERED, reason=f"its process answered {type(answer).__name__} out of turn"
    )


def _how_it_ended(ended: Exit, when: str) -> Failure:
    """A child that is gone before its last answer was read."""
    if ended.detail.startswith(UNEXPECTED):
        return Failure(outcome=Outcome.TAMPERED, reason=f"its process sent an {ended.detail} ({when})")
    reason = ended.detail or "its process ended without an answer"
    return Failure(outcome=_OUTCOMES[ended.kind], reason=f"{reason} ({when})")


_OUTCOMES = {
    "ok": Outcome.CRASHED,
    "error": Outcome.CRASHED,
    "crashed": Outcome.CRASHED,
    "timeout": Outcome.TIMEOUT,
    "out_of_memory": Outcome.OUT_OF_MEMORY,
    "output_limit": Outcome.OUTPUT_LIMIT,
}
