"""What an interpreter or emulator saw: no access outside of all tensors, no data race."""

from pipeline.backends.backend import MemoryFault
from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed

_OUTCOMES = {
    "out_of_bounds": Outcome.OUT_OF_BOUNDS,
    "misaligned": Outcome.LAUNCH_ERROR,
    "race": Outcome.NONDETERMINISTIC,
}


def check_memory(observation: CallObservation) -> Judgement:
    """Judge the faults of the call; on a device and in native code there is nobody who sees them."""
    failure = memory_failure(observation.observed.memory_faults)
    if failure is not None:
        return observation.fail(failure.outcome, failure.reason)
    return Passed() if observation.accesses_seen else NotApplicable()


def memory_failure(faults: tuple[MemoryFault, ...]) -> Failure | None:
    """The first fault, accesses out of bounds before races."""
    for kind, outcome in _OUTCOMES.items():
        for fault in faults:
            if fault.kind == kind:
                return Failure(outcome=outcome, reason=fault.text)
    return None
