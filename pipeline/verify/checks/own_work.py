"""The candidate did the work itself: it launched its own kernel, and PyTorch computed nothing for it."""

from pipeline.records.outcome import Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed


def check_own_work(observation: CallObservation) -> Judgement:
    """Judge launches and operators of PyTorch; an implementation may declare the ones that it uses."""
    called = [name for name in observation.noticed.operations if name not in observation.uses_torch]
    if called:
        text = f"let PyTorch compute {', '.join(called)}, which its `uses_torch` does not name"
        return observation.fail(Outcome.TAMPERED, text)
    if observation.prepared.empty:
        return NotApplicable()
    if observation.noticed.launches == 0:
        return observation.fail(Outcome.TAMPERED, "launched no kernel of its own")
    return Passed()
