"""The candidate left its process as it found it: functions, settings, files, threads and processes."""

from collections.abc import Sequence

from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed
from pipeline.verify.harness.messages import Observed

_SHOWN = 3  # changes that a reason names


def check_tampering(observation: CallObservation) -> Judgement:
    """Judge what the process reports; what it could hide reaches neither the judge nor its expectations."""
    observed = observation.observed
    failure = tampering_failure(observed, threads=observed.threads)
    if failure is not None:
        return observation.fail(failure.outcome, failure.reason)
    return NotApplicable() if observed.tampering is None else Passed()


def tampering_failure(observed: Observed, *, threads: int) -> Failure | None:
    """What it changed or left; `threads`: those that it must not leave."""
    if observed.tampering:
        return tampered(observed.tampering)
    for count, kind in ((threads, "thread"), (observed.children, "process")):
        if count:
            plural = f"{count} {kind}{'' if count == 1 else 'es' if kind == 'process' else 's'}"
            return Failure(outcome=Outcome.TAMPERED, reason=f"left {plural} running")
    return None


def tampered(lines: Sequence[str]) -> Failure:
    """What was changed, one line each."""
    more = len(lines) - _SHOWN
    text = ", ".join(lines[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return Failure(outcome=Outcome.TAMPERED, reason=text)
