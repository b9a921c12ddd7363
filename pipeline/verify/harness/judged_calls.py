"""Calls of one candidate that are judged at once: right, refused, or the end of the trial.

In: a candidate's process, cases. Out: a record of all right calls, and how each was made. After a wrong
result it calls again, to tell races, late writes and stale results from a plainly wrong value.
"""

import contextlib
from collections.abc import Mapping, Sequence

import torch

from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.checks.call_observation import Passed
from pipeline.verify.checks.determinism import changed_beyond_rounding
from pipeline.verify.checks.model_calls import CHECKS, ObservedCall, judge
from pipeline.verify.checks.tampering import tampered
from pipeline.verify.harness.messages import ReadyReply, RefusedReply, WeightUpdate
from pipeline.verify.harness.model_cases import ModelCase, ModelCaseSet
from pipeline.verify.harness.planning.case_plans import CasePlan, output_gradients
from pipeline.verify.harness.planning.trial_conditions import CallOptions, MadeCall
from pipeline.verify.harness.proxy import CandidateProxy, differing
from pipeline.verify.harness.session import ENDING, refusal

THREADS = (2, 3, 4, 8)  # of native code: more than the machine has cores, so that they interrupt each other
_LONG_SETTLE = 0.5  # seconds, where threads or processes are left
_LOOKS = 2  # more calls, to see whether a wrong result changes
_PLAINLY = CallOptions()


class CandidateFailed(Exception):
    """The verdict is known."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class JudgedCalls:
    """All judged calls."""

    def __init__(self, attempt: CandidateProxy, case_set: ModelCaseSet) -> None:
        self.attempt = attempt
        self._case_set = case_set
        self.seen: list[ObservedCall] = []
        """Of every call that was right, without its tensors."""
        self.share: float | None = None
        self.refused: dict[int, RefusedReply] = {}
        """By identity of the plan."""
        self.kept_elsewhere: tuple[str, ...] = ()
        """Parameters that the candidate seems to hold in another form: they cannot be given other values."""
        self.quickest: dict[int, tuple[float, CasePlan]] = {}
        """By identity of the plan: seconds of its shortest call."""
        self.slowest = 0.0
        """Seconds of the longest call: the first one of an autotuner's key makes several."""
        self.unaligned: RefusedReply | None = None
        """Where it refuses inputs that begin inside of their storage."""
        self._made: list[MadeCall] = []
        self._latest: MadeCall | None = None
        """What was tried last: a call, or construction for one."""
        self._updated: WeightUpdate | None = None
        self._places: dict[int, int] = {}
        """By identity of a right call: how many had been made with it."""
        self.pace = 0.0
        """Seconds for each unit of work, in the latest call on the base sizes."""

    def load(self) -> None:
        """Import the candidate."""
        answer = self.attempt.session.load()
        if isinstance(answer, RefusedReply):
            raise CandidateFailed(refusal(answer, ""))
        self._innocent(answer)

    @property
    def native(self) -> bool:
        """Whether any of its kernels is native code, which may have threads."""
        launches = (each for seen in self.seen for each in seen.done.observed.launches)
        return any(each.kind in ("extension", "ctypes") for each in launches)

    def judged(self, plan: CasePlan, options: CallOptions) -> ObservedCall | None:
        """One call; None where the candidate refused it, or nothing can be said."""
        case = self._case_set.case(plan)
        if case is None or id(plan) in self.refused or not self.ready_for(plan):
            return None
        seen = self.call(case, options)
        if isinstance(seen, RefusedReply):
            self._refuse(plan, seen, options)
            return None
        verdict = judge(seen)
        if isinstance(verdict, Failure):
            raise CandidateFailed(_explained(self._looked_at_again(seen, verdict, options), options))
        self.share = max(self.share or 0.0, verdict.share)
        self.seen.append(seen)
        self._places[id(seen)] = len(self._made)
        return seen

    def ready_for(self, plan: CasePlan) -> bool:
        """Construct for a plan; False where the candidate refuses, or cannot take over its weights."""
        self._latest = MadeCall(condition=plan.condition)
        refused = self.attempt.construct(plan)
        if refused is not None:
            self._refuse(plan, refused)
            return False
        ready = self.attempt.state
        self._innocent(ready)
        lost = [name for name in plan.changed if name in ready.missing]
        if lost and ready.spare >= sum(plan.state[name].numel() for name in lost):
            self.kept_elsewhere = tuple(lost)
            return False
        return True

    def call(self, case: ModelCase, options: CallOptions) -> ObservedCall | RefusedReply:
        """One call that is not judged yet, timed."""
        self._begin(MadeCall(condition=case.condition, options=options, update=self._updated))
        before = self.attempt.session.seconds
        seen = self.attempt.call(case, options)
        spent = self.attempt.session.seconds - before
        if case.condition.kind == "base":
            self.pace = spent / case.plan.work
        self.slowest = max(self.slowest, spent)
        shortest, _ = self.quickest.get(id(case.plan), (spent, case.plan))
        self.quickest[id(case.plan)] = min(shortest, spent), case.plan
        return seen

    def call_backward(
        self, case: ModelCase, gradients: Mapping[str, torch.Tensor], options: CallOptions = _PLAINLY
    ) -> tuple[ObservedCall, dict[str, torch.Tensor | None]] | RefusedReply:
        """One call with gradients, which is not judged yet."""
        self._begin(MadeCall(condition=case.condition, options=options, backward=True))
        return self.attempt.call_backward(case, gradients, options)

    def repeat(self, made: Sequence[MadeCall]) -> None:
        """Import the candidate and make the last of these calls, of another trial, whatever comes of it."""
        with contextlib.suppress(CandidateFailed):
            self.load()
            for call in made[-1:]:
                plan = next(each for each in self._case_set.plans if each.condition == call.condition)
                if not call.backward:
                    self.judged(plan, call.options)
                elif (case := self._case_set.case(plan)) is not None and self.ready_for(plan):
                    self.call_backward(case, output_gradients(plan), call.options)

    def _begin(self, call: MadeCall) -> None:
        self._latest, self._updated = call, None
        self._made.append(call)

    def found_in(self, seen: ObservedCall) -> None:
        """What is found now was done in an earlier call."""
        del self._made[self._places[id(seen)] :]
        self._latest = None

    @property
    def until_failure(self) -> tuple[MadeCall, ...]:
        """All calls up to the one that failed, or that it could not be constructed for."""
        if self._latest is None or (self._made and self._made[-1] is self._latest):
            return tuple(self._made)
        return (*self._made, self._latest)

    @property
    def checks(self) -> tuple[str, ...]:
        """Names of the checks that judged at least one call."""
        return CHECKS if self.seen else ()

    def _innocent(self, ready: ReadyReply) -> None:
        if ready.tampering:
            raise CandidateFailed(tampered(ready.tampering))

    def changed(self, plan: CasePlan, how: WeightUpdate) -> ObservedCall | None:
        """One call after the present instance got the weights of a plan; None where it cannot get them."""
        refused = self.attempt.update(plan, how)
        if refused is not None:
            raise CandidateFailed(refusal(refused, f"weights changed {how}"))
        self._innocent(self.attempt.state)
        if self.attempt.state.missing:
            return None
        self._updated = how
        try:
            return self.judged(plan, CallOptions())
        except CandidateFailed as failed:
            reason = f"{failed.failure.reason}; the weights had been changed since its last call ({how})"
            raise CandidateFailed(Failure(outcome=failed.failure.outcome, reason=reason)) from None

    def _refuse(self, plan: CasePlan, answer: RefusedReply, options: CallOptions = _PLAINLY) -> None:
        """Sizes that the problem does not declare may be refused, by an exception that says so.

        So may addresses that allocators do not give, for which some hardware has no instruction.
        """
        failure = refusal(answer, plan.condition.label)
        if options.lead and answer.error not in ENDING and failure.outcome not in _NEVER:
            self.unaligned = answer
            return
        if not plan.condition.refusable or answer.error in ENDING or failure.outcome in _NEVER:
            raise CandidateFailed(failure)
        self.refused[id(plan)] = answer

    def _looked_at_again(self, seen: ObservedCall, failure: Failure, options: CallOptions) -> Failure:
        if failure.outcome not in (Outcome.WRONG_VALUE, Outcome.UNWRITTEN_OUTPUT):
            return failure
        observed = seen.done.observed
        if observed.threads or observed.children:
            late = self._still_at_work(seen)
            if late is not None:
                return late
        if failure.outcome is not Outcome.WRONG_VALUE:
            return failure
        return self._changing(seen, failure, options) or self._without_weights(failure)

    def _still_at_work(self, seen: ObservedCall) -> Failure | None:
        again = self.call(seen.case, CallOptions(settle=_LONG_SETTLE))
        if isinstance(again, RefusedReply) or not any(each.changed_later for each in again.done.outputs):
            self._made.pop()  # the call before it is the one that failed
            self._latest = None
            return None
        reason = f"its outputs change after forward has returned ({seen.case.condition.label})"
        return Failure(outcome=Outcome.TAMPERED, reason=reason)

    def _changing(self, seen: ObservedCall, failure: Failure, options: CallOptions) -> Failure | None:
        """Garbage changes from call to call; a result that depends on earlier calls was right at first."""
        right_before = any(each.case is seen.case for each in self.seen)
        changed = rights = 0
        for _ in range(_LOOKS):
            again = self.attempt.call(
                seen.case,
                CallOptions(threads=options.threads, same_objects=options.same_objects, lead=options.lead),
            )
            if isinstance(again, RefusedReply):
                return None
            changed = max(changed, _changed(seen, again))
            rights += isinstance(judge(again), Passed)
        if right_before and not rights:
            reason = f"{failure.reason}; a call on equal inputs was right before"
            return Failure(outcome=Outcome.WRONG_VALUE, reason=reason)
        if not changed:
            return None
        reason = f"{changed} elements change between equal calls, and {failure.reason}"
        return Failure(outcome=Outcome.NONDETERMINISTIC, reason=reason)

    def _without_weights(self, failure: Failure) -> Failure:
        missing = self.attempt.state.missing
        if not missing:
            return failure
        reason = f"{failure.reason}; it has no counterpart of Model's parameter {missing[0]}"
        return Failure(outcome=Outcome.WRONG_VALUE, reason=reason)


def _changed(one: ObservedCall, other: ObservedCall) -> int:
    """Elements that the order of a sum does not explain, of two calls on equal inputs."""
    changed = 0
    for left, right, expected in zip(one.outputs, other.outputs, one.case.expected, strict=False):
        if left is None or right is None:
            return differing(one.outputs, other.outputs)
        changed += changed_beyond_rounding(left, right, expected)
    return changed


def _explained(failure: Failure, options: CallOptions) -> Failure:
    if not options.lead:
        return failure
    reason = f"{failure.reason}; the inputs begin at element {options.lead} of their storages"
    return Failure(outcome=failure.outcome, reason=reason)


_NEVER = (Outcome.OUT_OF_MEMORY, Outcome.OUT_OF_BOUNDS)
"""No refusal: the device says what the kernel did."""
