"""The gate fails closed: what did not run, or did not answer, never passes."""

import pytest

from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.checks.call_observation import NotApplicable, Passed
from pipeline.verify.checks.gate import Gate, GateBug
from tests.verify.oracle.simulated import softmax, stage

FAILURE = Failure(outcome=Outcome.WRONG_VALUE, reason="wrong")


def gate_after(**checks: object) -> tuple[Gate, Failure | None]:
    """A gate whose checks answer so, after one call."""
    gate = Gate({name: lambda _, answer=answer: answer for name, answer in checks.items()})
    with stage() as buffers:
        return gate, gate.judge(buffers.observe(softmax))


def test_all_passed() -> None:
    """Every check ran and said so; the worst share is kept."""
    gate, failure = gate_after(one=Passed(share=0.5, error=2.0), two=Passed())
    assert failure is None
    gate.require_all(1)
    assert (gate.worst_share, gate.worst_error) == (0.5, 2.0)
    assert [(result.check, result.cases) for result in gate.results()] == [("one", 1), ("two", 1)]


def test_first_failure_ends_it() -> None:
    """Later checks are not asked, and the variant cannot pass any more."""
    gate, failure = gate_after(one=Passed(), two=FAILURE, three=Passed())
    assert failure == FAILURE
    assert [result.cases for result in gate.results()] == [1, 0, 0]
    with pytest.raises(GateBug):
        gate.require_all(1)


@pytest.mark.parametrize("answer", [None, True, "passed", 1])
def test_another_answer_is_a_bug(answer: object) -> None:
    """A check that forgets to answer does not let pass."""
    with pytest.raises(GateBug, match="check 'two' answered"):
        gate_after(one=Passed(), two=answer)


def test_a_check_that_never_applied_is_a_bug() -> None:
    """Nothing passes unjudged."""
    gate, _ = gate_after(one=Passed(), two=NotApplicable())
    with pytest.raises(GateBug, match="two"):
        gate.require_all(1)


def test_no_calls_or_no_checks_is_a_bug() -> None:
    """An empty gate would let everything pass."""
    with pytest.raises(GateBug):
        Gate({})
    gate, _ = gate_after(one=Passed())
    with pytest.raises(GateBug):
        gate.require_all(0)
