"""Verdicts in words."""

from pipeline.performance.diagnosis import diagnose
from pipeline.performance.feedback import feedback
from pipeline.records.outcome import Outcome
from pipeline.records.results.profiled import ConfidenceInterval, Profiled, Timing
from pipeline.records.results.verified import Verified
from tests.execution.gym.made_up import judged, measured, result


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


def test_what_was_recorded_elsewhere_is_told_as_such():
    """Nobody saw its errors here, and its time is no measurement of ours."""
    line = "Some GPU, recorded in toy.json (123)"
    timing = Timing(
        samples=(1e-5,), median=ConfidenceInterval(value=1e-5, low=1e-5, high=1e-5, confidence=0.95)
    )
    timed = Profiled(timing=timing, comparisons=(), recorded=line, device={"name": "Some GPU"})
    told = feedback(result(verify=Verified(), profile=timed))
    assert "verify: passed, as recorded: the errors were not seen" in told
    assert any(each.startswith(f"recorded, not measured here ({line}): 10.") for each in told)
    assert not any(each.startswith("measured") for each in told)
