"""The candidate left its process as it found it: functions, settings, threads and processes."""

from pipeline.records.outcome import Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed

_SHOWN = 3  # changes that a reason names


def check_tampering(observation: CallObservation) -> Judgement:
    """Judge what the process reports; what it could hide reaches neither the judge nor its expectations."""
    noticed = observation.observed
    if noticed.tampering:
        more = len(noticed.tampering) - _SHOWN
        text = ", ".join(noticed.tampering[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
        return observation.fail(Outcome.TAMPERED, text)
    for count, kind in ((noticed.threads, "thread"), (noticed.children, "process")):
        if count:
            plural = f"{count} {kind}{'' if count == 1 else 'es' if kind == 'process' else 's'}"
            return observation.fail(Outcome.TAMPERED, f"left {plural} running")
    return NotApplicable() if noticed.tampering is None else Passed()
