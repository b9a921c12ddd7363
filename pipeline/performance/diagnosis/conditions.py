"""What disturbed the measurement: conditions and notes in, `throttled` and `disturbed` out."""

from collections.abc import Iterator

from pipeline.performance.diagnosis.case import Case, evidence
from pipeline.records.results.diagnosed import Finding, FindingCode


def measurement_conditions(case: Case) -> Iterator[Finding]:
    """A slowed clock by its reasons, and the notes of the measurement as they stand."""
    if case.profiled is None:
        return
    conditions = case.profiled.conditions
    if conditions is not None and conditions.throttled:
        numbers = {
            "clock_low": (conditions.clock_mhz_low, "MHz"),
            "clock_high": (conditions.clock_mhz_high, "MHz"),
            "temperature": (conditions.temperature_celsius, "°C"),
        }
        yield Finding(
            code=FindingCode.THROTTLED,
            basis="measured",
            sentence=f"The device slowed its clock while measuring: {', '.join(conditions.throttled)}.",
            evidence=evidence(
                **{name: (value, unit) for name, (value, unit) in numbers.items() if value is not None}
            ),
        )
    for note in case.profiled.notes:
        yield Finding(code=FindingCode.DISTURBED, basis="measured", sentence=note, evidence=())
