"""Verdicts in words."""

from pipeline.analyze.diagnosis import diagnose
from pipeline.analyze.feedback import feedback
from pipeline.records.outcome import Outcome
from tests.gym.made_up import judged, measured


def test_a_failure_is_told_with_its_reason():
    """And what passed before it; nothing after it."""
    lines = feedback(judged("verify", Outcome.WRONG_VALUE).result)
    assert lines == ("compile: passed", "verify: wrong_value: because")


def test_a_measurement_is_told_with_its_intervals():
    """Time, and speed-up with its verdict."""
    lines = feedback(measured(low=1.2, value=1.5, high=1.9).result)
    assert "against eager: 1.5 times as fast (1.2 to 1.9 at 95%): faster" in lines
    assert "verify: passed, largest error 0.1 of its bound" in lines


def test_findings_say_what_they_rest_on():
    """Measured, read from the binary, or an estimate."""
    result = measured(low=1.2, value=1.5, high=1.9).result
    findings = diagnose(result)
    assert findings
    told = [line for line in feedback(result, findings) if line.startswith("diagnosis (")]
    assert len(told) == len(findings)
