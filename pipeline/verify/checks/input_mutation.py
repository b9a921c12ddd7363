"""The inputs are unchanged, bit for bit."""

import torch

from pipeline.records.outcome import Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, Passed
from pipeline.verify.harness.buffers import integers


def check_input_mutation(observation: CallObservation) -> Judgement:
    """Compare every input with the judge's own copy, which the candidate cannot reach."""
    for slot in observation.layout.slots:
        if slot.role != "input":
            continue
        now = observation.arena.bits(slot)
        given = integers(observation.prepared.inputs[slot.name])
        if not torch.equal(now, given):
            changed = (now != given).nonzero()
            where = ", ".join(str(int(axis)) for axis in changed[0])
            return observation.fail(
                Outcome.INPUT_MUTATED,
                f"{slot.name}: {len(changed)} of {given.numel()} changed, first [{where}]",
            )
    return Passed()
