"""The work is finished when the call returns: outputs do not change afterwards."""

from collections.abc import Iterable

from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed
from pipeline.verify.checks.determinism import differing
from pipeline.verify.harness.messages import OutputState


def check_late_writes(observation: CallObservation) -> Judgement:
    """Compare the outputs at the return with those some time later, which the judge reads from outside."""
    late = late_output(observation.seen)
    if late is not None:
        return observation.fail(late.outcome, late.reason)
    if observation.later is None:
        return NotApplicable()
    for name, output in observation.outputs.items():
        changed = differing(output, observation.later[name])
        if changed:
            text = f"{name}: {changed} of {output.numel()} changed after the call had returned"
            return observation.fail(Outcome.TAMPERED, text)
    return Passed()


def late_output(outputs: Iterable[OutputState]) -> Failure | None:
    """The first output that the candidate's process saw change."""
    for output in outputs:
        if output.changed_later:
            return late_failure(output.name)
    return None


def late_failure(name: str) -> Failure:
    """Of an output that was not finished when the call returned."""
    return Failure(outcome=Outcome.TAMPERED, reason=f"{name}: changed after the call had returned")
