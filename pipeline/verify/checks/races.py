"""Data races between the threads of a region, which a build of its own notes whatever the schedule."""

from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed
from pipeline.verify.harness.messages import Observed


def check_races(observation: CallObservation) -> Judgement:
    """Judge calls of the instrumented build; a variant without one has not been looked at."""
    if observation.turn != "watched":
        return NotApplicable()
    failure = race_failure(observation.observed)
    return Passed() if failure is None else observation.fail(failure.outcome, failure.reason)


def race_failure(observed: Observed) -> Failure | None:
    """The first race that was noted in a call."""
    for fault in observed.memory_faults:
        if fault.kind == "race":
            return Failure(outcome=Outcome.NONDETERMINISTIC, reason=fault.text)
    return None
