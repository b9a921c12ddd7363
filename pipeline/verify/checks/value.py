"""The outputs are the expected ones, each element within its derived bound."""

import math
from collections.abc import Iterable, Mapping

import torch

from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.checks.call_observation import CallObservation, Judgement, NotApplicable, Passed
from pipeline.verify.oracle.tolerance import Expected, aligned, deviation

NOT_FINITE = " (an overflow, or a read of memory that was never written or lies outside of a tensor)"


def check_value(observation: CallObservation) -> Judgement:
    """Compare with the reference; later calls are compared with the first one by `determinism`."""
    if observation.first is not None:
        return NotApplicable()
    judgement = compare(observation.outputs, observation.prepared.expected)
    if isinstance(judgement, Failure):
        explained = with_remarks(judgement, observation.observed.remarks)
        return observation.fail(explained.outcome, explained.reason)
    return judgement


def with_remarks(failure: Failure, remarks: Iterable[str]) -> Failure:
    """The same with what may explain it."""
    if failure.outcome is not Outcome.WRONG_VALUE:
        return failure
    return Failure(outcome=failure.outcome, reason="; ".join([failure.reason, *remarks]))


def compare(outputs: Mapping[str, torch.Tensor | None], expected: Mapping[str, Expected]) -> Passed | Failure:
    """Named tensors with their expected values."""
    share = error = 0.0
    outputs = aligned(outputs, expected)
    for name, wanted in expected.items():
        output = outputs[name]
        if output is None:
            return Failure(outcome=Outcome.WRONG_SHAPE, reason=f"{name}: could not be read")
        found = deviation(output, wanted)
        if not found.passed:
            return Failure(outcome=Outcome.WRONG_VALUE, reason=describe(name, output, wanted))
        share, error = max(share, found.share), max(error, found.error)
    return Passed(share=share, error=error)


def describe(name: str, output: torch.Tensor, expected: Expected) -> str:
    """The worst element: where, got, expected, and how many are beyond their bound."""
    got = torch.view_as_real(output) if output.is_complex() else output
    found = deviation(got, expected)
    if found.where is None:
        return f"{name}: no elements"
    where = ", ".join(str(axis) for axis in found.where)
    if not (got.is_floating_point() or getattr(torch, expected.dtype).is_floating_point):
        exact = expected.integers[0] if expected.integers else expected.reference
        number, right = int(got[found.where].item()), int(exact[found.where].item())
        return f"{name}[{where}]: got {number}, expected {right}; {found.wrong} of {found.total} are wrong"
    value, wanted = got[found.where].item(), expected.reference[found.where].item()
    bound = expected.bound[found.where].item()
    within = f" ± {bound:.2g}"
    if expected.before_rounding:
        rounded = expected.reference[found.where].to(got.dtype).item()
        wanted, within = rounded, f", which {wanted:.8g}{within} is rounded to"
    if expected.anything_finite:
        return (
            f"{name}[{where}]: got {value:.8g}, expected a finite value as PyTorch's {wanted:.8g};"
            f" {found.wrong} of {found.total} are not finite"
        )
    if found.wrong == 0 and found.row > max(found.overall, 1.0):
        return (
            f"{name}: all elements, or all of a row, are off by one factor, {found.row:.3g} times what"
            f" rounding explains; [{where}]: got {value:.8g}, expected {wanted:.8g} ± {bound:.2g}"
        )
    if found.wrong == 0:
        return (
            f"{name}: the errors of all {found.total} elements together are too large,"
            f" {found.share:.3g} times what rounding explains; [{where}]: got {value:.8g},"
            f" expected {wanted:.8g} ± {bound:.2g}"
        )
    # Memory around tensors, and what was not written, is filled with such values.
    hint = "" if math.isfinite(value) or not math.isfinite(wanted) else NOT_FINITE
    return (
        f"{name}[{where}]: got {value:.8g}, expected {wanted:.8g}{within};"
        f" {found.wrong} of {found.total} beyond their bound{hint}"
    )
