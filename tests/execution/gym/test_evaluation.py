"""Rewards: what each outcome of an evaluation is worth."""

import pytest

from pipeline.execution.gym.evaluation import Rewards, VariantEvaluation
from pipeline.records.outcome import Failure, Outcome
from tests.execution.gym.made_up import judged, measured


def test_the_lower_bound_is_paid():
    """Not the estimate: what the interval leaves open is not earned."""
    assert Rewards().of(measured(low=1.2, value=1.5, high=1.9), "eager") == 1.2


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.PASSED])
def test_nothing_but_a_pass_pays(outcome):
    """Whatever the failure is called, and in whichever stage."""
    for stage in ("compile", "verify", "profile"):
        assert Rewards().of(judged(stage, outcome), "eager") <= 0


def test_cheats_lose():
    """What tampers, and what is faster than the device can be."""
    assert Rewards().of(judged("verify", Outcome.TAMPERED), "eager") == -1
    assert Rewards(cheated=-5).of(judged("profile", Outcome.OVER_ROOFLINE), "eager") == -5


def test_an_absent_baseline_pays_nothing():
    """A speed-up against nothing is none."""
    assert Rewards().of(measured(low=1.2, value=1.5, high=1.9), "compile") == 0


def test_a_step_that_was_cut_pays_nothing():
    """Even where the stages before had measured."""
    whole = measured(low=1.2, value=1.5, high=1.9)
    cut = Failure(outcome=Outcome.TIMEOUT, reason="too long")
    assert Rewards().of(VariantEvaluation(result=whole.result, time_out=cut, stage="profile"), "eager") == 0


@pytest.mark.parametrize("field", ["failed", "cheated"])
def test_failures_cannot_be_made_to_pay(field):
    """A setting that would is an error."""
    with pytest.raises(ValueError, match=f"{field}: expected 0 or less, got 0.1"):
        Rewards(**{field: 0.1})
