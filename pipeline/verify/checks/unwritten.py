"""Every element of every output was written: no poison is left."""

import torch

from pipeline.records.outcome import Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed
from pipeline.verify.harness.buffers import integers, words


def check_unwritten(observation: CallObservation) -> Judgement:
    """Look for the poison in the outputs, where it cannot be a result.

    In the first call it is a NaN that no arithmetic makes (integers have none, and wait for the next
    call). In later ones it is a number, which a small type may hold by chance: it counts where the first
    call left something else.
    """
    applies = False
    for slot in observation.layout.slots:
        dtype: torch.dtype = getattr(torch, slot.dtype)
        if slot.role != "output" or (observation.first is None and not dtype.is_floating_point):
            continue
        applies = True
        now = integers(observation.outputs[slot.name])
        left = now == words(slot, observation.patterns)[1]
        if observation.first is not None:
            left &= now != integers(observation.first[slot.name])
        if bool(left.any()):
            count = int(left.sum())
            where = ", ".join(str(int(axis)) for axis in left.nonzero()[0])
            return observation.fail(
                Outcome.UNWRITTEN_OUTPUT,
                f"{slot.name}: {count} of {now.numel()} never written, first [{where}]",
            )
    return Passed() if applies else NotApplicable()
