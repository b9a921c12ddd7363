"""Checks made once, after all values were right: gradients, whose work it was, read-only and fenced inputs.

In: all judged calls. Out: the names of the checks that were made, and notes; raises `CandidateFailed`.
"""

from collections.abc import Mapping

import msgspec
import torch

from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.checks.call_observation import Passed
from pipeline.verify.checks.delegated_work import (
    computing_kernels,
    did_the_work,
    differentiated,
    own_launches,
    with_computing_kernels,
)
from pipeline.verify.checks.model_calls import (
    ObservedCall,
    compare_for,
    judge,
    values,
    wrong_form,
)
from pipeline.verify.harness.judged_calls import THREADS, CandidateFailed, JudgedCalls
from pipeline.verify.harness.messages import RefusedReply
from pipeline.verify.harness.model_cases import GradientCase, ModelCase, ModelCaseSet
from pipeline.verify.harness.planning.case_plans import CasePlan, output_gradients
from pipeline.verify.harness.planning.trial_conditions import CallOptions
from pipeline.verify.harness.session import ProcessEnded, refusal
from pipeline.verify.oracle.input_variations import STRIDED
from pipeline.verify.oracle.tolerance import Expected

NOT_ASKED = "a copy of Model: whether own kernels did the work was not asked"
_FENCED_SIZES = 3
TINY = 64  # elements of the largest output: on fewer, an operator's result equals another's by chance


def final_checks(
    calls: JudgedCalls, case_set: ModelCaseSet, settings: Verify, *, on_host: bool
) -> tuple[tuple[str, ...], list[str]]:
    """Names of the checks that were made, and notes; memory can only be protected `on_host`."""
    made, notes = list[str](), list[str]()
    if on_host and _protected(calls, every=settings.protect == "every"):
        made.append("protected")
    if on_host and _fenced(calls):
        made.append("fenced")
    if settings.own_work:
        _work(calls, notes)
        made.append("work")
    else:
        notes.append(NOT_ASKED)
    if case_set.check_gradients:
        _gradients(calls, case_set)
        made.append("gradients")
    if settings.own_work and _suppressed(calls):
        made.append("suppressed")
    return tuple(made), notes


def work_alone(calls: JudgedCalls, settings: Verify) -> tuple[tuple[str, ...], list[str]]:
    """As `final_checks`, of a candidate that cannot be called any more."""
    if not settings.own_work:
        return (), [NOT_ASKED]
    notes = list[str]()
    _work(calls, notes)
    return ("work",), notes


def _work(calls: JudgedCalls, notes: list[str]) -> None:
    """PyTorch may stand in on sizes and views that the problem does not show, if it does not everywhere."""
    fallback: dict[str, None] = {}
    elsewhere = computing_kernels(each.done.observed for each in calls.seen)
    varied = any(seen.case.plan.changed for seen in calls.seen)
    for seen in calls.seen:
        if all(output.aliases for output in seen.case.plan.outputs):
            continue  # nothing is to be done: `Model` returns its inputs
        if _nothing_given(seen.case.plan):
            continue  # a kernel need not be launched on no elements
        # Where an input is a right answer (a rectifier of what is positive), a right kernel only copies.
        reference = {} if _answers_itself(seen) else seen.case.computing
        small = max((value.numel() for value in seen.case.plan.values), default=0) < TINY
        observed = with_computing_kernels(seen.done.observed, elsewhere)
        failure = did_the_work(
            observed,
            reference,
            called=seen.case.called,
            small=small,
            identity=varied and not seen.case.plan.changed,
        )
        if failure is None:
            continue
        label = seen.case.condition.label
        if seen.case.condition.kind != "sizes" and seen.case.condition.variation != STRIDED:
            calls.found_in(seen)
            raise CandidateFailed(Failure(outcome=failure.outcome, reason=f"{failure.reason} ({label})"))
        fallback[label.partition(", seed")[0]] = None
    if fallback:
        notes.append(f"leaves it to PyTorch: {'; '.join(fallback)}")


def _nothing_given(plan: CasePlan) -> bool:
    """Whether an input, or all of the outputs, have no elements."""
    given = any(not tensor.numel() for tensor in plan.encoded.tensors.values())
    return given or not any(value.numel() for value in plan.values)


def _answers_itself(seen: ObservedCall) -> bool:
    return any(name.startswith("input") for name in seen.case.trivial)


def _gradients(calls: JudgedCalls, case_set: ModelCaseSet) -> None:
    """Gradients of inputs and parameters within their bounds."""
    tried = list[GradientCase]()
    for plan in case_set.plans:
        case = case_set.gradient_case(plan)
        if case is None or id(plan) in calls.refused or not calls.ready_for(plan):
            continue
        _propagated(calls, case, CallOptions())
        tried.append(case)
    if not tried:
        raise CandidateFailed(Failure(outcome=Outcome.TIMEOUT, reason="backward could not be tried"))
    for threads in THREADS if calls.native else ():
        if calls.ready_for(tried[0].case.plan):
            _propagated(calls, tried[0], CallOptions(threads=threads))
    try:
        if calls.ready_for(tried[0].case.plan):
            _propagated(calls, tried[0], CallOptions(interrupted=True))
    except CandidateFailed as failed:
        reason = f"{failed.failure.reason}; forward had been called again before backward"
        raise CandidateFailed(msgspec.structs.replace(failed.failure, reason=reason)) from None


def _propagated(calls: JudgedCalls, case: GradientCase, options: CallOptions) -> None:
    """One call with its gradients."""
    plan = case.case.plan
    answer = calls.call_backward(case.case, output_gradients(plan), options)
    if isinstance(answer, RefusedReply):
        failure = refusal(answer, plan.condition.label)
        raise CandidateFailed(msgspec.structs.replace(failure, reason=f"backward: {failure.reason}"))
    seen, found = answer
    forward = [each.done.observed for each in calls.seen]
    elsewhere = differentiated(forward, seen.done.observed)
    compared = _compared(case.expected, found, case.case, calls)
    left = next((each for each in seen.done.gradients if each.unwritten), None)
    if left is not None and isinstance(compared, Failure) and compared.outcome is Outcome.WRONG_VALUE:
        reason = f"{left.name}: {left.unwritten} elements were never written ({plan.condition.label})"
        compared = Failure(outcome=Outcome.UNWRITTEN_OUTPUT, reason=reason)
    for verdict in (judge(seen), compared, elsewhere):
        if verdict is None:
            continue
        if isinstance(verdict, Failure):
            raise CandidateFailed(verdict)
        calls.share = max(calls.share or 0.0, verdict.share)


def _compared(
    expected: Mapping[str, Expected],
    found: Mapping[str, torch.Tensor | None],
    case: ModelCase,
    calls: JudgedCalls,
) -> Passed | Failure:
    """Missing gradients of inputs, and of parameters that were taken over, are wrong unless they are zero."""
    missing = calls.attempt.state.missing
    wanted = {}
    for name, each in expected.items():
        zero = not bool(each.reference.any())
        if name not in found and (zero or name.removeprefix("gradient of ") in missing):
            continue
        if name not in found:
            reason = f"no {name} ({case.condition.label})"
            return Failure(outcome=Outcome.WRONG_VALUE, reason=reason)
        tensor = found[name]
        if tensor is not None and tuple(tensor.shape) != tuple(each.reference.shape):
            reason = f"{name}: has shape {tuple(tensor.shape)}, expected {tuple(each.reference.shape)}"
            return Failure(outcome=Outcome.WRONG_SHAPE, reason=reason)
        wanted[name] = each
    return compare_for(case, found, wanted)


def _protected(calls: JudgedCalls, *, every: bool) -> bool:
    """Read-only inputs: who writes to one and restores it is stopped by the processor."""
    plans = [seen.case.plan for seen in calls.seen if not seen.case.plan.mutated]
    chosen = list({id(plan): plan for plan in plans}.values())[: None if every else 1]
    for plan in chosen:
        try:
            seen = calls.judged(plan, CallOptions(protected=True))
        except ProcessEnded as ended:
            if ended.touched_memory:
                reason = f"wrote to a read-only input ({plan.condition.label})"
                raise CandidateFailed(Failure(outcome=Outcome.INPUT_MUTATED, reason=reason)) from ended
            raise
        if seen is None:
            return False
    return bool(chosen)


def _fenced(calls: JudgedCalls) -> bool:
    """Nothing can be read around the inputs: who reads there and drops it would fault on a device."""
    plans = list({id(seen.case.plan): seen.case.plan for seen in calls.seen}.values())
    sizes = [plan for plan in plans if plan.condition.kind == "sizes"]
    for plan in (*plans[:1], *sizes[:_FENCED_SIZES]):
        try:
            calls.judged(plan, CallOptions(fenced=True))
        except ProcessEnded as ended:
            if ended.touched_memory:
                reason = f"reads or writes beyond an input ({plan.condition.label})"
                raise CandidateFailed(Failure(outcome=Outcome.OUT_OF_BOUNDS, reason=reason)) from ended
            raise
    return bool(plans)


def _suppressed(calls: JudgedCalls) -> bool:
    """Without its own kernels, on data that it did not see just now, the output must be wrong."""
    cases = {id(seen.case): seen for seen in calls.seen if _tells(seen)}
    if len(cases) < 2:
        return False
    last, *others = reversed(cases.values())
    seen = others[-1]
    if calls.judged(last.case.plan, CallOptions()) is None or not calls.ready_for(seen.case.plan):
        return False
    try:
        again = calls.call(seen.case, CallOptions(suppress=True))
    except ProcessEnded:
        calls.attempt.session.excuse()  # without its kernels it may do anything
        return True
    calls.attempt.forget_instance()  # it may keep what its kernels did not compute
    if isinstance(again, RefusedReply):
        return again.error == MemoryError.__name__  # a size that its kernels would have computed
    fits = wrong_form(again.done, seen.case.plan) is None
    if fits and isinstance(values(seen.case, again.outputs), Passed):
        reason = f"its output is right without its own kernels ({seen.case.condition.label})"
        raise CandidateFailed(Failure(outcome=Outcome.TAMPERED, reason=reason))
    return True


def _tells(seen: ObservedCall) -> bool:
    """A call on which a right output without work is no accident."""
    launched = own_launches(seen.done.observed, seen.case.computing)
    large = max((value.numel() for value in seen.case.plan.values), default=0) >= TINY
    return bool(launched) and large and not seen.case.trivial
