"""Judged calls of one candidate: each one is right, or refused, or the end.

In: an attempt, cases. Out: what was seen of each right call, and a record of all of them. A wrong result is
looked at again before it is told: does it change from call to call, is something still at work?
"""

import re

from pipeline.records.outcome import Failure, Outcome
from pipeline.verify.harness.returning.case_set import Case, CaseBook
from pipeline.verify.harness.returning.judgement import CHECKS, Seen, Share, judge, tampered
from pipeline.verify.harness.returning.messages import Ready, Refused
from pipeline.verify.harness.returning.planning.case_plans import Draft
from pipeline.verify.harness.returning.proxy import Attempt, Turn, differing

_LONG_SETTLE = 0.5  # seconds, where threads or processes are left
_LOOKS = 2  # more calls, to see whether a wrong result changes
ENDING = ("SystemExit", "KeyboardInterrupt", "GeneratorExit")


class Failed(Exception):
    """The verdict is known."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class Calls:
    """All judged calls."""

    def __init__(self, attempt: Attempt, book: CaseBook) -> None:
        self.attempt = attempt
        self._book = book
        self.seen: list[Seen] = []
        """Of every call that was right, without its tensors."""
        self.share: float | None = None
        self.refused: dict[int, Refused] = {}
        """By identity of the draft."""
        self.kept_elsewhere: tuple[str, ...] = ()
        """Parameters that the candidate seems to hold in another form: they cannot be given other values."""
        self.quickest: dict[int, tuple[float, Draft]] = {}
        """By identity of the draft: seconds of its shortest call."""
        self.pace = 0.0
        """Seconds for each unit of work, in the latest call on the base sizes."""

    def load(self) -> tuple[str, ...]:
        """Import the candidate; what confines its process."""
        answer = self.attempt.session.load()
        if isinstance(answer, Refused):
            raise Failed(refusal(answer, ""))
        self._innocent(answer)
        return answer.isolation

    def judged(self, draft: Draft, turn: Turn) -> Seen | None:
        """One call; None where the candidate refused it, or nothing can be said."""
        case = self._book.case(draft)
        if case is None or id(draft) in self.refused or not self.ready_for(draft):
            return None
        seen = self.call(case, turn)
        if isinstance(seen, Refused):
            self._refuse(draft, seen)
            return None
        verdict = judge(seen)
        if isinstance(verdict, Failure):
            raise Failed(self._looked_at_again(seen, verdict, turn))
        self.share = max(self.share or 0.0, verdict.share)
        self.seen.append(seen)
        return seen

    def ready_for(self, draft: Draft) -> bool:
        """Construct for a draft; False where the candidate refuses, or cannot take over its weights."""
        refused = self.attempt.construct(draft)
        if refused is not None:
            self._refuse(draft, refused)
            return False
        ready = self.attempt.state
        self._innocent(ready)
        lost = [name for name in draft.changed if name in ready.missing]
        if lost and ready.spare >= sum(draft.state[name].numel() for name in lost):
            self.kept_elsewhere = tuple(lost)
            return False
        return True

    def call(self, case: Case, turn: Turn) -> Seen | Refused:
        """One call that is not judged yet, timed."""
        before = self.attempt.session.seconds
        seen = self.attempt.call(case, turn)
        spent = self.attempt.session.seconds - before
        if case.condition.kind == "base":
            self.pace = spent / case.draft.work
        shortest, _ = self.quickest.get(id(case.draft), (spent, case.draft))
        self.quickest[id(case.draft)] = min(shortest, spent), case.draft
        return seen

    @property
    def checks(self) -> tuple[str, ...]:
        """Names of the checks that judged at least one call."""
        return CHECKS if self.seen else ()

    def _innocent(self, ready: Ready) -> None:
        if ready.tampering:
            raise Failed(tampered(ready.tampering))

    def _refuse(self, draft: Draft, answer: Refused) -> None:
        """Sizes that the problem does not declare may be refused, by an exception that says so."""
        failure = refusal(answer, draft.condition.label)
        if not draft.condition.refusable or answer.error in ENDING or failure.outcome in _NEVER:
            raise Failed(failure)
        self.refused[id(draft)] = answer

    def _looked_at_again(self, seen: Seen, failure: Failure, turn: Turn) -> Failure:
        if failure.outcome not in (Outcome.WRONG_VALUE, Outcome.UNWRITTEN_OUTPUT):
            return failure
        observed = seen.done.observed
        if observed.threads or observed.children:
            late = self._still_at_work(seen)
            if late is not None:
                return late
        if failure.outcome is not Outcome.WRONG_VALUE:
            return failure
        return self._changing(seen, failure, turn) or self._without_weights(failure)

    def _still_at_work(self, seen: Seen) -> Failure | None:
        again = self.attempt.call(seen.case, Turn(settle=_LONG_SETTLE))
        if isinstance(again, Refused) or not any(each.changed_later for each in again.done.outputs):
            return None
        reason = f"its outputs change after forward has returned ({seen.case.condition.label})"
        return Failure(outcome=Outcome.TAMPERED, reason=reason)

    def _changing(self, seen: Seen, failure: Failure, turn: Turn) -> Failure | None:
        """Garbage changes from call to call; a result that depends on earlier calls was right at first."""
        right_before = any(each.case is seen.case for each in self.seen)
        changed = rights = 0
        for _ in range(_LOOKS):
            again = self.attempt.call(seen.case, Turn(threads=turn.threads, same_objects=turn.same_objects))
            if isinstance(again, Refused):
                return None
            changed = max(changed, differing(seen.outputs, again.outputs))
            rights += isinstance(judge(again), Share)
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


def refusal(answer: Refused, label: str) -> Failure:
    """What an exception means where none was allowed."""
    where = f" ({label})" if label else ""
    if _REACHES_OUT.search(answer.reason):
        outcome = Outcome.TAMPERED
    elif answer.error in ENDING:
        outcome = Outcome.CRASHED
    elif answer.error == "DeviceUnavailable":
        outcome = Outcome.DEVICE_UNAVAILABLE
    elif answer.error == "MemoryError":
        outcome = Outcome.OUT_OF_MEMORY
    elif answer.stage in ("import", "build"):
        outcome = Outcome.COMPILE_ERROR
    else:
        outcome = Outcome.LAUNCH_ERROR
    return Failure(outcome=outcome, reason=f"{answer.reason or answer.error}{where}"[:500])


_REACHES_OUT = re.compile(r"Errno (1|13|30)\].*\'/proc/")
"""What confinement says to who writes to the memory or to the settings of processes."""
_NEVER = (Outcome.OUT_OF_MEMORY,)
