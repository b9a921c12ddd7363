"""Nothing was written outside of the tensors: guard bands and the padding of rows are untouched."""

from pipeline.records.outcome import Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, Passed


def check_guards(observation: CallObservation) -> Judgement:
    """Look at the memory around every tensor."""
    for slot in observation.layout.slots:
        trespass = observation.arena.trespass(slot, observation.patterns)
        if trespass is not None:
            return observation.fail(Outcome.OUT_OF_BOUNDS, trespass)
    beside = observation.observed.out_of_bounds
    if beside:
        return observation.fail(Outcome.OUT_OF_BOUNDS, "; ".join(beside))
    return Passed()
