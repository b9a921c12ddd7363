"""The outputs of the first call are the expected ones, each element within its derived bound."""

from pipeline.records.outcome import Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed
from pipeline.verify.oracle.tolerance import Deviation, deviation


def check_value(observation: CallObservation) -> Judgement:
    """Compare with the reference; later calls are compared with the first one by `determinism`."""
    if observation.first is not None:
        return NotApplicable()
    share = error = 0.0
    for name, expected in observation.prepared.expected.items():
        found = deviation(observation.outputs[name], expected)
        if not found.passed:
            return observation.fail(Outcome.WRONG_VALUE, describe(name, found, observation))
        share, error = max(share, found.share), max(error, found.error)
    return Passed(share=share, error=error)


def describe(name: str, found: Deviation, observation: CallObservation) -> str:
    """The worst element: where, got, expected, and how far beyond its bound."""
    if found.where is None:
        return f"{name}: no elements"
    got = observation.outputs[name][found.where].item()
    expected = observation.prepared.expected[name]
    wanted = expected.reference[found.where].item()
    bound = expected.bound[found.where].item()
    where = ", ".join(str(axis) for axis in found.where)
    return (
        f"{name}[{where}]: got {got:.6g}, expected {wanted:.6g} ± {bound:.2g};"
        f" {found.wrong} of {found.total} beyond their bound"
    )
