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
            return observation.fail(Outcome.INPUT_MUTATED, changed_elements(slot.name, now, given))
    return Passed()


def changed_elements(name: str, now: torch.Tensor, before: torch.Tensor) -> str:
    """How many elements of an input changed, and which one first."""
    changed = now != before
    if now.is_floating_point():
        changed &= ~(now.isnan() & before.isnan())
    count = int(changed.sum())
    where = ", ".join(str(int(axis)) for axis in changed.nonzero()[0]) if count else "bits of a NaN"
    return f"{name}: {count} of {now.numel()} elements changed, first [{where}]"
