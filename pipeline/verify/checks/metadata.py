"""Shape, dtype, strides and address of every output are those of the tensor that was passed in."""

from pipeline.records.outcome import Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, Passed


def check_metadata(observation: CallObservation) -> Judgement:
    """Compare what the candidate's process reports with what was passed in."""
    seen = {output.name: output for output in observation.seen}
    for slot in observation.layout.slots:
        if slot.role != "output":
            continue
        output = seen.get(slot.name)
        if output is None:
            return observation.fail(Outcome.WRONG_SHAPE, f"{slot.name}: not reported")
        if output.dtype != slot.dtype:
            return observation.fail(
                Outcome.WRONG_DTYPE, f"{slot.name}: became {output.dtype}, expected {slot.dtype}"
            )
        if output.shape != slot.shape or output.strides != slot.strides:
            return observation.fail(
                Outcome.WRONG_SHAPE,
                f"{slot.name}: became shape {output.shape} strides {output.strides},"
                f" expected {slot.shape} strides {slot.strides}",
            )
        if output.moved:
            return observation.fail(
                Outcome.UNWRITTEN_OUTPUT, f"{slot.name}: was put elsewhere instead of being written in place"
            )
    return Passed()
