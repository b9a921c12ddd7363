"""The candidate did the work itself: it launched its own kernel, and PyTorch computed nothing for it."""

from pipeline.records.outcome import Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed


def check_own_work(observation: CallObservation) -> Judgement:
    """Judge launches and operators of PyTorch; an implementation may declare the ones that it uses."""
    operations = dict.fromkeys(each.name for each in observation.observed.operations)
    called = [
        name
        for name in operations
        if name not in observation.uses_torch and name.partition(":")[0] not in observation.computes_with
    ]
    if called:
        who = "PyTorch" if any("::" in name for name in called) else "the host"
        text = f"let {who} compute {', '.join(called)}, which its `uses_torch` does not name"
        return observation.fail(Outcome.TAMPERED, text)
    if observation.prepared.empty:
        return NotApplicable()
    if observation.observed.counted == 0:
        return observation.fail(Outcome.TAMPERED, "launched no kernel of its own")
    return Passed()
