"""Judges one call of a candidate: form of the outputs, memory, values.

In: the case, what the candidate's process reports, copies of the outputs and of the inputs. Out: a `Failure`,
or the share of the bound that was used. The fault to fix first comes first.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.verify.checks.call_observation import Passed
from pipeline.verify.checks.input_mutation import changed_elements
from pipeline.verify.checks.late_writes import late_output
from pipeline.verify.checks.memory import memory_failure
from pipeline.verify.checks.tampering import tampering_failure
from pipeline.verify.checks.value import compare, with_remarks
from pipeline.verify.harness.messages import CallReply, OutputState
from pipeline.verify.harness.model_cases import ModelCase
from pipeline.verify.harness.planning.case_plans import (
    CasePlan,
    ReferenceOutput,
    bits_of,
    output_gradients,
)
from pipeline.verify.oracle.tolerance import Expected


class ObservedCall(Record, frozen=True, kw_only=True, eq=False):
    """One call as the judge sees it."""

    case: ModelCase
    done: CallReply
    outputs: tuple[torch.Tensor | None, ...]
    """Copies; None for one that was not copied."""
    mutated: dict[str, torch.Tensor]
    """Inputs that are not what they were, as they are now."""
    trespass: str | None
    """What was written around the inputs."""


def judge(seen: ObservedCall) -> Passed | Failure:
    """Judge one call."""
    for check in _BEFORE_VALUES.values():
        failure = check(seen)
        if failure is not None:
            return _labelled(_with_reuse(failure, seen), seen.case)
    judgement = values(seen.case, seen.outputs)
    if isinstance(judgement, Failure):
        return with_remarks(judgement, seen.done.observed.remarks)
    return judgement


def _with_reuse(failure: Failure, seen: ObservedCall) -> Failure:
    """A function may document that it reuses the memory of an input; nothing else is wrong with it then."""
    if failure.outcome is not Outcome.INPUT_MUTATED or seen.done.reshaped:
        return failure
    if wrong_form(seen.done, seen.case.plan) is not None:
        return failure
    if isinstance(values(seen.case, seen.outputs), Failure):
        return failure
    text = "the outputs are correct: if it documents that it reuses the input's memory, pass it a copy"
    return Failure(outcome=Outcome.INPUT_REUSED, reason=f"{failure.reason}; {text}")


def _aliasing(seen: ObservedCall) -> Failure | None:
    """An output has memory of its own, unless `Model`'s shares that of the same input."""
    for output, reference in zip(seen.done.outputs, seen.case.plan.outputs, strict=True):
        shared = [name for name in output.aliases if name not in reference.aliases]
        if not shared or 0 in output.shape or any(_is_identity(seen, output, name) for name in shared):
            continue
        changed = [name for name in shared if name in seen.mutated]
        if changed:
            reason = f"{output.name} was written into {changed[0]}"
            return Failure(outcome=Outcome.INPUT_MUTATED, reason=reason)
        return wrong_shape(f"{output.name}: shares the memory of {shared[0]}, expected memory of its own")
    return None


def _is_identity(seen: ObservedCall, output: OutputState, name: str) -> bool:
    """Whether an output is an unchanged input where that is the result (a sort of one element)."""
    given = seen.case.plan.encoded.tensors.get(name)
    number = int(output.name.rpartition(" ")[2])
    if given is None or name in seen.mutated:
        return False
    wanted = seen.case.plan.values[number]
    if (given.shape, given.dtype) != (wanted.shape, wanted.dtype):
        return False
    return torch.equal(bits_of(given), bits_of(wanted))


def _mutation(seen: ObservedCall) -> Failure | None:
    """Inputs are what they were; where `Model` changes one, the same change or none is right."""
    if seen.done.reshaped:
        return Failure(outcome=Outcome.INPUT_MUTATED, reason="; ".join(seen.done.reshaped)[:400])
    for name, now in seen.mutated.items():
        wanted = seen.case.plan.mutated.get(name)
        if wanted is not None and _close(now, wanted):
            continue
        if wanted is not None:
            reason = f"{name}: holds other values than Model leaves there, which changes it as well"
            return Failure(outcome=Outcome.WRONG_VALUE, reason=reason)
        plan = seen.case.plan
        before = (plan.encoded.tensors if name in plan.encoded.tensors else output_gradients(plan))[name]
        reason = changed_elements(name, now, before)
        return Failure(outcome=Outcome.INPUT_MUTATED, reason=reason)
    return None


def _close(now: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Within what either order of operations rounds to."""
    if not now.is_floating_point():
        return torch.equal(now, wanted)
    rtol = 64 * torch.finfo(now.dtype).eps
    now, wanted = now.double(), wanted.double()
    scale = float(wanted[wanted.isfinite()].abs().max()) if bool(wanted.isfinite().any()) else 0.0
    return torch.allclose(now, wanted, rtol=rtol, atol=rtol * scale, equal_nan=True)


def _guards(seen: ObservedCall) -> Failure | None:
    reasons = [seen.trespass] if seen.trespass else list(seen.done.observed.out_of_bounds)
    return Failure(outcome=Outcome.OUT_OF_BOUNDS, reason="; ".join(reasons)[:400]) if reasons else None


def overwritten_result() -> Failure:
    """A caller may keep what it got."""
    reason = "a result changes with the next call: it is returned in memory that each call writes again"
    return Failure(outcome=Outcome.WRONG_VALUE, reason=reason)


def _written(seen: ObservedCall) -> Failure | None:
    """No element holds what its memory was filled with, unless that is a right value by chance.

    Fresh memory is filled with numbers of usual magnitude in every second call: among a million elements of
    float32 one may well come out as just that number. Filled with NaN, right values are none.
    """
    left = [output for output in seen.done.outputs if output.unwritten]
    if not left:
        return None
    has_nan = any(bool(each.reference.isnan().any()) for each in seen.case.expected)
    if not has_nan and isinstance(values(seen.case, seen.outputs), Passed):
        return None
    reason = f"{left[0].name}: {left[0].unwritten} elements were never written"
    return Failure(outcome=Outcome.UNWRITTEN_OUTPUT, reason=reason)


def values(case: ModelCase, outputs: Sequence[torch.Tensor | None]) -> Passed | Failure:
    """Every element within its bound."""
    names = [f"output {number}" for number in range(len(outputs))]
    named = dict(zip(names, outputs, strict=True))
    return compare_for(case, named, dict(zip(names, case.expected, strict=True)))


def compare_for(
    case: ModelCase, outputs: Mapping[str, torch.Tensor | None], expected: Mapping[str, Expected]
) -> Passed | Failure:
    """Named tensors against their expected values; a reason names the case."""
    judgement = compare(outputs, expected)
    return _labelled(judgement, case) if isinstance(judgement, Failure) else judgement


def _labelled(failure: Failure, case: ModelCase) -> Failure:
    return Failure(outcome=failure.outcome, reason=f"{failure.reason} ({case.condition.label})")


_PLAIN = ("Tensor", "Parameter")


def wrong_form(done: CallReply, plan: CasePlan) -> Failure | None:
    """The first difference of the outputs, apart from their values."""
    several = plan.structure != "tensor"
    named = "dict of" in (done.structure[:7], plan.structure[:7])
    if (done.structure == "tensor") == several or (named and done.structure != plan.structure):
        expected = f"{len(plan.outputs)} tensors" if several else "a tensor"
        return wrong_shape(
            f"returned {_article(done.structure)}, expected {_article(plan.structure) if named else expected}"
        )
    if len(plan.outputs) != len(done.outputs):
        return wrong_shape(f"returned {len(done.outputs)} outputs, expected {len(plan.outputs)}")
    for reference, output in zip(plan.outputs, done.outputs, strict=True):
        for failure in _differences(output, reference, plan):
            return failure
    return None


def _differences(got: OutputState, wanted: ReferenceOutput, plan: CasePlan) -> Iterator[Failure]:
    """In the order in which they are reported; a difference may make the later ones meaningless."""
    if got.kind not in _PLAIN:
        yield wrong_shape(f"{got.name}: is {_article(got.kind)}, expected a torch.Tensor")
    if got.dtype != wanted.dtype:
        reason = f"{got.name}: is {got.dtype}, expected {wanted.dtype}"
        yield Failure(outcome=Outcome.WRONG_DTYPE, reason=reason)
    if got.shape != wanted.shape:
        yield wrong_shape(f"{got.name}: has shape {got.shape}, expected {wanted.shape}")
    if plan.strict_strides and not fitting_strides(got, wanted, plan):
        yield wrong_shape(f"{got.name}: has strides {got.strides}, expected {wanted.strides}")
    if got.elsewhere:
        yield wrong_shape(f"{got.name}: is on {got.elsewhere}, expected it where the inputs are")
    if got.overlaps:
        yield wrong_shape(f"{got.name}: two of its elements share memory")


def fitting_strides(got: OutputState, wanted: ReferenceOutput, plan: CasePlan) -> bool:
    """As `Model`'s, contiguous, or as an input of this shape, whose strides elementwise operators keep."""
    if 0 in got.shape:
        return True
    inputs = [
        tuple(tensor.stride()) for tensor in plan.encoded.tensors.values() if tuple(tensor.shape) == got.shape
    ]
    allowed = [wanted.strides, contiguous_strides(got.shape), *inputs]
    axes = [axis for axis, size in enumerate(got.shape) if size > 1]
    return any(all(got.strides[axis] == strides[axis] for axis in axes) for strides in allowed)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Of a tensor without gaps, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def wrong_shape(reason: str) -> Failure:
    """A failure of form."""
    return Failure(outcome=Outcome.WRONG_SHAPE, reason=reason)


def _article(kind: str) -> str:
    return "nothing" if kind in ("NoneType", "None") else f"a {kind}"


_BEFORE_VALUES: dict[str, Callable[[ObservedCall], Failure | None]] = {
    # Threads may be a pool's: they count where something is wrong.
    "tampering": lambda seen: tampering_failure(seen.done.observed, threads=0),
    "metadata": lambda seen: wrong_form(seen.done, seen.case.plan),
    "aliasing": _aliasing,
    "mutation": _mutation,
    "memory": lambda seen: memory_failure(seen.done.observed.memory_faults),
    "guards": _guards,
    "completion": lambda seen: (
        late_output(seen.done.outputs) or (overwritten_result() if seen.done.overwrites else None)
    ),
    "written": _written,
}
"""The fault to fix first comes first."""
CHECKS = (*_BEFORE_VALUES, "value")
"""Names, in the order in which they judge a call."""
