"""Equal inputs give equal outputs: in a second call, and later at other addresses after other work."""

import torch

from pipeline.records.outcome import Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed
from pipeline.verify.checks.value import describe
from pipeline.verify.harness.buffers import integers
from pipeline.verify.oracle.tolerance import Expected, deviation, unexplained


def check_determinism(observation: CallObservation) -> Judgement:
    """Bitwise where the kernel claims it (any NaN equals any other), else within the bound."""
    if observation.first is None:
        return NotApplicable()
    total = compared = 0
    for name, output in observation.outputs.items():
        different = differing(output, observation.first[name])
        total, compared = total + different, compared + output.numel()
        if different == 0:
            continue
        if observation.deterministic:
            return observation.fail(
                Outcome.NONDETERMINISTIC,
                f"{name}: {different} of {output.numel()} differ from the first call",
            )
        found = deviation(output, observation.prepared.expected[name])
        if not found.passed:
            return observation.fail(
                Outcome.NONDETERMINISTIC, describe(name, output, observation.prepared.expected[name])
            )
    return Passed(differing=total, compared=compared)


def differing(one: torch.Tensor, other: torch.Tensor) -> int:
    """How many elements have other bits; NaNs count as equal."""
    if torch.equal(integers(one), integers(other)):
        return 0
    different = integers(one) != integers(other)
    if one.is_floating_point():
        different &= ~(one.isnan() & other.isnan())
    return int(different.sum())


def changed_beyond_rounding(one: torch.Tensor, other: torch.Tensor, expected: Expected) -> int:
    """How many elements of two results differ by more than either may differ from the reference.

    What is less is the order of a sum. Where several results are right, any difference counts.
    """
    if one.shape != other.shape:
        return max(one.numel(), other.numel(), 1)
    shape = expected.reference.shape
    values = [torch.view_as_real(each) if each.is_complex() else each for each in (one, other)]
    if expected.selection is not None or expected.unordered or any(each.shape != shape for each in values):
        return differing(one, other)
    left, right = (each.double() for each in values)
    same = (left == right) | (left.isnan() & right.isnan())
    if expected.before_rounding:
        same |= torch.maximum(unexplained(left, expected), unexplained(right, expected)) <= expected.bound
        return int((~same).sum())
    same |= (left - right).abs() <= expected.bound
    # Where infinity or NaN is expected there is no bound for other numbers.
    same |= ~expected.reference.isfinite() & left.isfinite() & right.isfinite()
    return int((~same).sum())
