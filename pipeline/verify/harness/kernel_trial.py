"""Tries one variant of a declared kernel: the sequence of its calls, each judged before the next one.

In: what to load, and the cases. Out: a `KernelTrialResult`: passed, with the share of the bound that was
used, or the first failure. Every case is called twice on equal inputs; at the end, cases are called at other
addresses after other work, with read-only inputs, and with tensors that end at a protected page.
"""

import functools
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec
import torch

from pipeline.backends.registry import backend
from pipeline.records.errors import ToolchainError
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.records.results.verified import CheckResult, Verified
from pipeline.sandbox.processes.fork_server import ForkServer
from pipeline.store.temporary import scratch_folder
from pipeline.verify.checks.call_observation import CALL_KINDS, CallKind, CallObservation
from pipeline.verify.checks.determinism import changed_beyond_rounding
from pipeline.verify.checks.gate import Gate
from pipeline.verify.harness.access_place import with_place
from pipeline.verify.harness.buffers import AGAIN, ALIGNMENT, FIRST, Arena, Layout, lay_out
from pipeline.verify.harness.kernel_cases import KernelCase, KernelCaseSet, PreparedCase
from pipeline.verify.harness.messages import CallReply, DeclaredKernel, KernelCall, RefusedReply
from pipeline.verify.harness.planning.shapes import Shape
from pipeline.verify.harness.session import ProcessEnded, Session, TrialSubject, refusal
from pipeline.verify.oracle.trivial_answers import summarize

LOG = "log.txt"
RACE_LOG = "races.txt"
SHIFT = 17 * ALIGNMENT  # bytes by which all addresses differ in a later call
EVERY_THIRD = 3  # the cases that are called on several threads


class KernelSubject(TrialSubject, frozen=True, kw_only=True):
    """A variant of a declared kernel that is tried."""

    candidate: DeclaredKernel
    repeat: Literal["every", "first"]
    """Which cases are called on equal inputs again."""
    deterministic: bool
    """Whether the kernel claims equal bits on equal inputs."""
    watched: tuple[Shape, ...] = ()
    """On which data races are sought; empty: they are not."""
    accesses_seen: bool
    """Whether an interpreter or emulator runs it, which looks at every access to memory."""

    @property
    def unseen(self) -> frozenset[str]:
        """Checks that have nothing to look at where it runs."""
        return frozenset() if self.accesses_seen else frozenset({"memory"})


class KernelTrialResult(Record, frozen=True, kw_only=True):
    """How it went."""

    result: Verified | Failure
    checks: tuple[CheckResult, ...]
    cases: tuple[KernelCase, ...]
    """Those that were called, up to the failure."""
    isolation: tuple[str, ...] = ()
    """What confined its process."""


def try_variant(
    server: ForkServer,
    subject: KernelSubject,
    case_set: KernelCaseSet,
    cases: tuple[KernelCase, ...],
    folder: Path,
) -> KernelTrialResult:
    """Judge one variant; the child's output goes to `log.txt` in `folder`."""
    # All expected values are computed before the child's clock starts, and never enter its process.
    steps = [_place_case(case_set.prepare(case), number, subject) for number, case in enumerate(cases)]
    size = max(max(one.layout.size, one.flush().layout.size) for one in steps) + 2 * SHIFT
    gate = Gate()
    with Arena(size) as arena:
        with (
            scratch_folder() as scratch,
            Session(server, subject, arena, log=folder / LOG, scratch=scratch) as talk,
        ):
            attempt = CallSequence(talk, gate, subject)
            failure = _try(talk, attempt, steps)
        failure = with_place(
            failure,
            subject.candidate.device,
            functools.partial(Session, server, subject, arena),
            lambda again: CallSequence(again, Gate(), subject).run(attempt.latest),
            crashed=talk.crashed,
        )
    tried = tuple(one.prepared.case for one in steps[: attempt.cases])
    unwatched = None if failure is not None else _seek_races(server, subject, case_set, gate, folder)
    if isinstance(unwatched, Failure):
        failure = unwatched
    if failure is not None:
        _conclude(folder / LOG, failure)
        failure = Failure(outcome=failure.outcome, reason=failure.reason, log=LOG)
        return KernelTrialResult(result=failure, checks=gate.results(), cases=tried, isolation=talk.isolation)
    unseen = subject.unseen if unwatched is None else subject.unseen | {"races"}
    gate.require_all(attempt.calls, without=unseen)
    verified = _verified(gate, steps)
    return KernelTrialResult(result=verified, checks=gate.results(), cases=tried, isolation=talk.isolation)


class Unwatched(Record, frozen=True):
    """Races between threads were not sought."""

    reason: str


class PlacedCase(Record, frozen=True, kw_only=True, eq=False):
    """One case as it is called."""

    prepared: PreparedCase
    layout: Layout
    threads: int

    @property
    def label(self) -> str:
        """Of the case."""
        return self.prepared.case.label

    def moved(self) -> "PlacedCase":
        """The same at other addresses."""
        layout = lay_out(self.prepared.problem, padded=self.prepared.case.shape.padded, shift=SHIFT)
        return PlacedCase(prepared=self.prepared, layout=layout, threads=self.threads)

    def flush(self) -> "PlacedCase":
        """The same with every tensor at the end of a page."""
        layout = lay_out(self.prepared.problem, padded=self.prepared.case.shape.padded, flush=True)
        return PlacedCase(prepared=self.prepared, layout=layout, threads=self.threads)


def _place_case(prepared: PreparedCase, number: int, subject: KernelSubject) -> PlacedCase:
    """The case of this number; every third one runs on several threads.

    The others run on one, because threads that wait for each other on busy cores are what costs most.
    """
    layout = lay_out(prepared.problem, padded=prepared.case.shape.padded)
    threads = 1 if number % EVERY_THIRD else subject.candidate.threads
    return PlacedCase(prepared=prepared, layout=layout, threads=threads)


class CallSequence:
    """All calls of one variant."""

    def __init__(self, talk: Session, gate: Gate, subject: KernelSubject) -> None:
        self._talk = talk
        self._gate = gate
        self._subject = subject
        self.calls = 0
        self.cases = 0
        self.latest: list[PlacedCase] = []
        """What was called last, if anything was."""

    def run(self, steps: list[PlacedCase]) -> Failure | None:
        """Load, and call until the first failure; None where there was none."""
        return self.load() or self._run(steps)

    def run_watched(self, steps: list[PlacedCase]) -> Failure | None:
        """The calls of a build that finds data races; it is loaded already."""
        found = (self._call(one, "watched", None) for one in steps)
        return next((each for each in found if isinstance(each, Failure)), None)

    def load(self) -> Failure | None:
        """Load the artifact, or make the build that finds data races and load that."""
        loaded = self._talk.load()
        return refusal(loaded, "") if isinstance(loaded, RefusedReply) else None

    def _run(self, steps: list[PlacedCase]) -> Failure | None:
        first: dict[str, CallObservation] = {}
        for turn, one in self._order(steps):
            self.cases += turn == "first"
            found = self._call(one, turn, first.get(one.label))
            if isinstance(found, Failure):
                return found
            first.setdefault(one.label, found)
        return None

    @property
    def _last_turn(self) -> CallKind:
        # Memory of a device cannot be protected.
        return "fenced" if self._subject.on_host else "elsewhere"

    def _order(self, steps: list[PlacedCase]) -> Iterator[tuple[CallKind, PlacedCase]]:
        settings = self._subject.settings
        for number, one in enumerate(steps):
            yield "first", one
            if number == 0 or self._subject.repeat == "every":
                for _ in range(settings.repetitions - 1):
                    yield "again", one
        for one in steps if settings.elsewhere == "every" else steps[:1]:
            yield "elsewhere", one.moved()
        if self._subject.on_host:
            # Last, because a candidate that touches what it may not does not survive it.
            for one in steps if settings.protect == "every" else steps[:1]:
                yield "protected", one
            for one in steps if settings.protect == "every" else _one_of_each_shape(steps):
                yield "fenced", one.flush()

    def _call(
        self, one: PlacedCase, turn: CallKind, first: CallObservation | None
    ) -> CallObservation | Failure:
        observation = self._observe(one, turn, first)
        if isinstance(observation, Failure):
            return observation
        self.calls += 1
        failure = self._gate.judge(observation)
        if failure is None:
            return observation
        if failure.outcome is Outcome.WRONG_VALUE:
            return self._consistent(one, observation, failure)
        return failure

    def _consistent(self, one: PlacedCase, wrong: CallObservation, failure: Failure) -> Failure:
        """A wrong value that changes from call to call is a race or unset memory: another thing to fix."""
        again = self._observe(one, wrong.turn, None)
        if isinstance(again, Failure):
            return failure
        changed = sum(
            changed_beyond_rounding(output, wrong.outputs[name], one.prepared.expected[name])
            for name, output in again.outputs.items()
        )
        if not changed:
            return failure
        reason = f"{changed} elements change between equal calls, and {failure.reason}"
        return Failure(outcome=Outcome.NONDETERMINISTIC, reason=reason)

    def _observe(
        self, one: PlacedCase, turn: CallKind, first: CallObservation | None
    ) -> CallObservation | Failure:
        self.latest = [one]
        arena = self._talk.arena
        patterns = AGAIN if turn == "again" else FIRST
        arena.write(one.layout, one.prepared.inputs, patterns)
        settle = self._subject.settings.settle_seconds if self.calls == 0 else 0.0
        request = KernelCall(
            nonce=os.urandom(16).hex(),
            layout=one.layout,
            poison=patterns.poison,
            threads=one.threads,
            inspect=self.calls == 0 or turn == self._last_turn,
            disturb=turn == "elsewhere",
            protected=turn == "protected",
            fenced=turn == "fenced",
            settle=settle,
        )
        done = self._answer(request, f"{one.label}{CALL_KINDS[turn]}")
        if isinstance(done, Failure):
            return done
        outputs = self._outputs(one.layout)
        job = self._subject.candidate.job
        return CallObservation(
            prepared=one.prepared,
            deterministic=self._subject.deterministic,
            turn=turn,
            arena=arena,
            layout=one.layout,
            patterns=patterns,
            seen=done.outputs,
            outputs=outputs,
            first=None if first is None else first.outputs,
            observed=done.observed,
            accesses_seen=self._subject.accesses_seen,
            uses_torch=job.implementation.uses_torch,
            computes_with=backend(job.variant.backend).computes_with,
            later=self._later(one.layout, settle) if settle else None,
        )

    def _answer(self, request: KernelCall, when: str) -> CallReply | Failure:
        """What crashes only where the inputs cannot be written has written to them; likewise with a fence."""
        try:
            done = self._talk.call(request, when)
        except ProcessEnded as ended:
            if not ended.touched_memory or not (request.protected or request.fenced):
                raise
            if request.protected:
                return Failure(outcome=Outcome.INPUT_MUTATED, reason=f"wrote to a read-only input ({when})")
            reason = f"touched memory beyond a tensor ({when})"
            return Failure(outcome=Outcome.OUT_OF_BOUNDS, reason=reason)
        return refusal(done, when) if isinstance(done, RefusedReply) else done

    def _later(self, layout: Layout, seconds: float) -> dict[str, torch.Tensor]:
        """What a thread or process that goes on working would change, read from outside."""
        time.sleep(seconds)
        return self._outputs(layout)

    def _outputs(self, layout: Layout) -> dict[str, torch.Tensor]:
        arena = self._talk.arena
        return {slot.name: arena.copy(slot) for slot in layout.slots if slot.role == "output"}


def _one_of_each_shape(steps: list[PlacedCase]) -> list[PlacedCase]:
    """Which tail is handled wrongly depends on the shape, not on the values."""
    shapes: dict[tuple[object, ...], PlacedCase] = {}
    for one in steps:
        shape = one.prepared.case.shape
        shapes.setdefault((*shape.dimensions.items(), shape.padded), one)
    return list(shapes.values())


def _verified(gate: Gate, steps: list[PlacedCase]) -> Verified:
    weak = summarize({one.label: one.prepared.trivial for one in steps if not one.prepared.empty})
    return Verified(
        worst_share=gate.worst_share,
        worst_error=gate.worst_error,
        weak=weak.task,
        weak_cases=weak.cases,
        differing=gate.differing,
        compared=gate.compared,
    )


def _try(talk: Session, attempt: CallSequence, steps: list[PlacedCase]) -> Failure | None:
    """All calls, and how the process ends after them."""
    try:
        return attempt.run(steps) or talk.finish()
    except ProcessEnded as ended:
        return ended.failure


def _seek_races(
    server: ForkServer, subject: KernelSubject, case_set: KernelCaseSet, gate: Gate, folder: Path
) -> Failure | Unwatched | None:
    """Judge calls of an instrumented build, in a process of its own; what hinders them is no fault."""
    kernel = subject.candidate
    if not subject.watched:
        return Unwatched("")
    try:
        detector = backend(kernel.job.variant.backend).race_detector(
            Path(kernel.folder, kernel.compiled.artifact)
        )
    except ToolchainError as error:
        return _unwatched(folder, str(error))
    if detector is None:
        return Unwatched("it starts no threads")
    kernel = msgspec.structs.replace(
        kernel, detector=str(detector), threads=max(subject.settings.thread_counts)
    )
    subject = msgspec.structs.replace(subject, candidate=kernel, builds=True)
    steps = _watched_steps([case_set.prepare(case) for case in case_set.plain(subject.watched)], subject)
    with (
        Arena(max(one.layout.size for one in steps)) as arena,
        scratch_folder() as scratch,
        Session(server, subject, arena, log=folder / RACE_LOG, scratch=scratch) as talk,
    ):
        attempt = CallSequence(talk, gate, subject)
        try:
            unbuilt = attempt.load()
            failure = None if unbuilt is not None else attempt.run_watched(steps)
        except ProcessEnded as ended:
            unbuilt, failure = ended.failure, None
    return failure if unbuilt is None else _unwatched(folder, unbuilt.reason)


def _watched_steps(cases: list[PreparedCase], subject: KernelSubject) -> list[PlacedCase]:
    """The first case on every number of threads, each other one on one of them."""
    counts = subject.settings.thread_counts
    pairs = [(cases[0], count) for count in counts]
    pairs += zip(cases[1:], itertools.cycle(reversed(counts)), strict=False)
    return [
        PlacedCase(
            prepared=prepared,
            layout=lay_out(prepared.problem, padded=prepared.case.shape.padded),
            threads=count,
        )
        for prepared, count in pairs
    ]


def _unwatched(folder: Path, reason: str) -> Unwatched:
    """A line in the log: the record says only that the check judged no call."""
    with (folder / LOG).open("a") as stream:
        stream.write(f"\nverify: races between threads were not sought: {reason}\n")
    return Unwatched(reason)


def _conclude(log: Path, failure: Failure) -> None:
    """End the log with the verdict: a crash prints nothing itself, and a reader starts from the log."""
    with log.open("a") as stream:
        stream.write(f"\nverify: {failure.outcome}: {failure.reason}\n")
