"""The work was finished when the call returned: outputs do not change any more."""

from pipeline.records.outcome import Outcome
from pipeline.verify.checks.call_observation import Judgement, NotApplicable, Observation, Passed
from pipeline.verify.checks.determinism import differing


def check_completion(observation: Observation) -> Judgement:
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
