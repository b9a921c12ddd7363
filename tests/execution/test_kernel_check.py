"""What `kernelmill verify` prints of a kernel that it checked."""

from pipeline.execution.kernel_check import CheckedVariant, KernelCheck, KernelCheckRequest, check_text
from pipeline.records.outcome import Outcome
from pipeline.records.results.verified import CheckResult


def variant(implementation: str, outcome: Outcome, **calls: int) -> CheckedVariant:
    """One that was verified, with so many calls that passed each check."""
    return CheckedVariant(
        implementation=implementation,
        hardware="cpu",
        tunables="UNROLL=4",
        where="cpu",
        outcome=outcome,
        reason="",
        share=None,
        checks=tuple(CheckResult(check=name, cases=count, seconds=0.1) for name, count in calls.items()),
        seconds=1.0,
    )


def test_each_failure_has_its_own_counts() -> None:
    """Each of two that failed says how far it came; one that passed does not, nor checks without a call."""
    variants = (
        variant("cpp", Outcome.WRONG_VALUE, tampering=3, memory=0, value=2),
        variant("blocked", Outcome.TIMEOUT, tampering=1, memory=0, value=0),
        variant("simple", Outcome.PASSED, tampering=9, memory=0, value=9),
    )
    text = check_text(
        KernelCheck(
            request=KernelCheckRequest(kernel="softmax"),
            workloads=("awkward",),
            variants=variants,
            failures=(),
            failed_jobs=(),
            pruned=(),
        )
    )
    assert [line for line in text.splitlines() if "calls" in line] == [
        "  cpp cpu UNROLL=4: calls that passed each check before it failed: tampering 3, value 2",
        "  blocked cpu UNROLL=4: calls that passed each check before it failed: tampering 1",
    ]
