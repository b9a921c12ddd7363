"""The work is finished when the call returns: outputs do not change afterwards."""

from pipeline.records.outcome import Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed
from pipeline.verify.checks.determinism import differing


def check_late_writes(observation: CallObservation) -> Judgement:
    """Compare the outputs at the return with those some time later, which the judge reads from outside."""
    late = [output.name for output in observation.seen if output.changed_later]
    if late:
        return observation.fail(Outcome.TAMPERED, f"{late[0]}: changed after the call had returned")
    if observation.later is None:
        return NotApplicable()
    for name, output in observation.outputs.items():
        changed = differing(output, observation.later[name])
        if changed:
            text = f"{name}: {changed} of {output.numel()} changed after the call had returned"
            return observation.fail(Outcome.TAMPERED, text)
    return Passed()
