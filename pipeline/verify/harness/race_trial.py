"""Seeks data races between OpenMP threads of a candidate, in a process where its builds are instrumented.

In: a candidate that passed, and how long its calls took. Out: `RacesSought`: the first race, or why there was
nothing to look at. Whatever else goes wrong there is no fault of the candidate.
"""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from pipeline.backends.cpp import thread_races
from pipeline.records.errors import ToolchainError
from pipeline.records.outcome import Failure
from pipeline.records.record import Record
from pipeline.sandbox.processes.fork_server import ForkServer
from pipeline.store.temporary import scratch_folder
from pipeline.verify.checks.model_calls import ObservedCall
from pipeline.verify.checks.races import race_failure
from pipeline.verify.harness.messages import RefusedReply
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.planning.case_plans import CasePlan, output_gradients
from pipeline.verify.harness.planning.trial_conditions import CallOptions, MadeCall
from pipeline.verify.harness.proxy import CandidateMemory, CandidateProxy, layout_for
from pipeline.verify.harness.session import ModelSubject, ProcessEnded, Session

RACE_LOG = "races.txt"
_CALL_SECONDS = 5.0  # for one instrumented call; plans that would take longer are not called
_OTHERS = 2  # plans besides the first one


class RacesSought(Record, frozen=True, kw_only=True):
    """How it went."""

    failure: Failure | None = None
    calls: int = 0
    unsought: str = ""
    """Why races were not sought, or not in all calls; empty: they were."""
    call: MadeCall | None = None
    """The one that failed."""


def seek_races(
    server: ForkServer,
    subject: ModelSubject,
    case_set: ModelCaseSet,
    plans: Sequence[CasePlan],
    folder: Path,
) -> RacesSought:
    """Build and call the candidate once more; `plans`: those that it took, the quickest first."""
    try:
        detector = thread_races.detector()
    except ToolchainError as error:
        return RacesSought(unsought=str(error))
    candidate = msgspec.structs.replace(subject.candidate, detector=str(detector))
    subject = msgspec.structs.replace(subject, candidate=candidate, builds=True)
    layout = layout_for(plans, gradients=case_set.check_gradients)
    with (
        CandidateMemory(layout.size) as memory,
        scratch_folder() as scratch,
        Session(server, subject, memory, log=folder / RACE_LOG, scratch=scratch) as session,
    ):
        trial = _Trial(CandidateProxy(session, memory, layout), case_set)
        try:
            return trial.run(plans, subject.settings.thread_counts)
        except ProcessEnded as ended:
            return RacesSought(calls=trial.calls, unsought=ended.failure.reason)


class _Trial:
    def __init__(self, proxy: CandidateProxy, case_set: ModelCaseSet) -> None:
        self._proxy = proxy
        self._case_set = case_set
        self.calls = 0

    def run(self, plans: Sequence[CasePlan], counts: Sequence[int]) -> RacesSought:
        """The quickest plan first, which may build the candidate, and shows how slow its calls are."""
        loaded = self._proxy.session.load()
        if isinstance(loaded, RefusedReply):
            return RacesSought(unsought=loaded.reason)
        self._call(plans[0], 1)
        pace = self._seconds(plans[0]) / plans[0].work
        # Backward last: who refuses it on some sizes has been called forward on all of them.
        for backward in (False, True) if self._case_set.check_gradients else (False,):
            for plan, threads in _watched_calls(plans, pace, counts):
                found = self._call(plan, threads, backward=backward)
                if found is not None:
                    return found
        return RacesSought(calls=self.calls)

    def _seconds(self, plan: CasePlan) -> float:
        before = self._proxy.session.seconds
        self._call(plan, 1)
        return self._proxy.session.seconds - before

    def _call(self, plan: CasePlan, threads: int, *, backward: bool = False) -> RacesSought | None:
        """None where the call shows no race."""
        case, options = self._case_set.case(plan), CallOptions(threads=threads, instrumented=True)
        refused = self._proxy.construct(plan)
        if case is None or refused is not None:
            return None if refused is None else RacesSought(unsought=refused.reason)
        seen: ObservedCall | RefusedReply
        if backward:
            answer = self._proxy.call_backward(case, output_gradients(plan), options)
            seen = answer if isinstance(answer, RefusedReply) else answer[0]
        else:
            seen = self._proxy.call(case, options)
        if isinstance(seen, RefusedReply):
            return RacesSought(calls=self.calls, unsought=seen.reason)
        if not seen.done.observed.watched:
            return RacesSought(unsought="its native code is not built by a compiler on the PATH")
        self.calls += threads > 1
        failure = race_failure(seen.done.observed)
        if failure is None:
            return None
        way = ", backward" if backward else ""
        reason = f"{failure.reason} ({plan.condition.label}{way}, instrumented build, {threads} threads)"
        failure = Failure(outcome=failure.outcome, reason=reason)
        call = MadeCall(condition=plan.condition, options=options, backward=backward)
        return RacesSought(failure=failure, calls=self.calls, call=call)


def _watched_calls(
    plans: Sequence[CasePlan], pace: float, counts: Sequence[int]
) -> Iterator[tuple[CasePlan, int]]:
    """The largest plan that is not too slow on every number of threads, smaller ones on one each."""
    quick = [plan for plan in plans if pace * plan.work <= _CALL_SECONDS] or [plans[0]]
    largest, *others = sorted(quick, key=lambda plan: -plan.work)
    yield from ((largest, count) for count in counts)
    yield from zip(others[:_OTHERS], itertools.cycle(reversed(counts)), strict=False)
