"""Tries one variant: calls it on every case in a child process, and lets the gate judge every call.

In: what to load, and the cases. Out: a `KernelTrialResult`: passed, with the share of the bound that
was used, or the first failure.
"""

from pathlib import Path

from pipeline.records.outcome import Failure
from pipeline.records.record import Record
from pipeline.records.results.verified import CheckResult, Verified
from pipeline.sandbox.processes.fork_server import ForkServer
from pipeline.store.temporary import scratch_folder
from pipeline.verify.checks.gate import Gate
from pipeline.verify.harness.buffers import Arena
from pipeline.verify.harness.call_sequence import SHIFT, CallSequence, KernelSubject, PlacedCase, place_case
from pipeline.verify.harness.kernel_cases import KernelCase, KernelCaseSet
from pipeline.verify.harness.session import ProcessEnded, Session
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
    subject: KernelSubject,
    case_set: KernelCaseSet,
    cases: tuple[KernelCase, ...],
    folder: Path,
) -> KernelTrialResult:
    """Judge one variant; the child's output goes to `log.txt` in `folder`."""
    # All expected values are computed before the child's clock starts, and never enter its process.
    steps = [place_case(case_set.prepare(case), number, subject) for number, case in enumerate(cases)]
    size = max(max(one.layout.size, one.flush().layout.size) for one in steps) + 2 * SHIFT
    gate = Gate()
    with (
        Arena(size) as arena,
        scratch_folder() as scratch,
        Session(server, subject, arena, log=folder / LOG, scratch=scratch) as talk,
    ):
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
    """All calls, and how the process ends after them."""
    try:
        return attempt.run(steps) or talk.finish()
    except ProcessEnded as ended:
        return ended.failure


def _conclude(log: Path, failure: Failure) -> None:
    """End the log with the verdict: a crash prints nothing itself, and a reader starts from the log."""
    with log.open("a") as stream:
        stream.write(f"\nverify: {failure.outcome}: {failure.reason}\n")
