"""Tries one variant: calls it on every case in a child process, and lets the gate judge every call.

In: what to load, and the cases. Out: a `KernelTrialResult`: passed, with the share of the bound that
was used, or the first failure.
"""

import signal
from pathlib import Path

from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.records.results.verified import CheckResult, Verified
from pipeline.sandbox.processes.fork_server import ChildEnded, Exit, ForkServer
from pipeline.store.temporary import scratch_folder
from pipeline.verify.checks.call_observation import CALL_KINDS
from pipeline.verify.checks.gate import Gate
from pipeline.verify.harness.buffers import Arena
from pipeline.verify.harness.call_sequence import SHIFT, CallSequence, PlacedCase, place_case
from pipeline.verify.harness.in_place.session import Session, TrialSubject, exit_failure
from pipeline.verify.harness.kernel_cases import KernelCase, KernelCaseSet
from pipeline.verify.oracle.trivial_answers import summarize

LOG = "log.txt"


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
    subject: TrialSubject,
    case_set: KernelCaseSet,
    cases: tuple[KernelCase, ...],
    folder: Path,
) -> KernelTrialResult:
    """Judge one variant; the child's output goes to `log.txt` in `folder`."""
    # All expected values are computed before the child's clock starts, and never enter its process.
    steps = [place_case(case_set.prepare(case), number, subject) for number, case in enumerate(cases)]
    size = max(max(one.layout.size, one.flush().layout.size) for one in steps) + 2 * SHIFT
    gate = Gate()
    with Arena(size) as arena, scratch_folder() as scratch:
        talk = Session(server, subject, arena, log=folder / LOG, scratch=scratch)
        attempt = CallSequence(talk, gate, subject)
        failure = _try(talk, attempt, steps)
    tried = tuple(one.prepared.case for one in steps[: attempt.cases])
    if failure is not None:
        _conclude(folder / LOG, failure)
        failure = Failure(outcome=failure.outcome, reason=failure.reason, log=LOG)
        return KernelTrialResult(result=failure, checks=gate.results(), cases=tried, isolation=talk.isolation)
    gate.require_all(attempt.calls)
    verified = _verified(gate, steps)
    return KernelTrialResult(result=verified, checks=gate.results(), cases=tried, isolation=talk.isolation)


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
    """All calls; however it ends, the child does not outlive it."""
    try:
        failure = talk.load() or attempt.run(steps)
        ended = talk.stop()
    except ChildEnded as ending:
        return _ended_early(ending.exit, attempt)
    finally:
        talk.stop()
    if failure is None and ended.kind != "ok":
        return exit_failure(ended, "after the last call")
    return failure


def _ended_early(ended: Exit, attempt: CallSequence) -> Failure:
    """What crashes only where the inputs cannot be written has written to them; beyond a fence, likewise."""
    when = f"{attempt.label}{CALL_KINDS[attempt.turn]}"
    if attempt.turn == "protected" and ended.code == -signal.SIGSEGV:
        return Failure(outcome=Outcome.INPUT_MUTATED, reason=f"wrote to a read-only input ({when})")
    if attempt.turn == "fenced" and ended.code == -signal.SIGSEGV:
        return Failure(outcome=Outcome.OUT_OF_BOUNDS, reason=f"touched memory beyond a tensor ({when})")
    return exit_failure(ended, when)


def _conclude(log: Path, failure: Failure) -> None:
    """End the log with the verdict: a crash prints nothing itself, and a reader starts from the log."""
    with log.open("a") as stream:
        stream.write(f"\nverify: {failure.outcome}: {failure.reason}\n")
