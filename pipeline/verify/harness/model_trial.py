"""Tries one candidate: the order of its calls, and the verdict on them.

In: a candidate, the cases of its problem. Out: a `ModelTrialResult`: right or the first fault, the share of
the bound that was used, and notes for the reader. It fails closed: right means called often enough, under
conditions that the candidate could not know, and judged by every check each time.
"""

import functools
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pipeline.backends.cpp import extension_headers
from pipeline.backends.cpp.extension_builds import first_complaint, may_build
from pipeline.backends.devices.device_registry import HOST
from pipeline.backends.registry import emulated_extensions
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.errors import one_line
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.records.results.judged import FRAGILE, VIEWS, JudgedWhere
from pipeline.sandbox.processes.fork_server import ForkServer
from pipeline.store.temporary import scratch_folder
from pipeline.verify.checks.delegated_work import computed_by_torch
from pipeline.verify.checks.model_calls import ObservedCall, fitting_strides
from pipeline.verify.harness.access_place import with_place
from pipeline.verify.harness.final_checks import final_checks, work_alone
from pipeline.verify.harness.judged_calls import THREADS, CandidateFailed, JudgedCalls
from pipeline.verify.harness.messages import InterpretedLaunch, ModelFile, WeightUpdate
from pipeline.verify.harness.model_cases import ModelCaseSet
from pipeline.verify.harness.planning.case_plans import CasePlan, differ_by_weights
from pipeline.verify.harness.planning.trial_conditions import CallOptions, MadeCall
from pipeline.verify.harness.proxy import (
    ALIGNED_LEAD,
    SHIFT,
    CandidateMemory,
    CandidateProxy,
    differing,
    layout_for,
)
from pipeline.verify.harness.race_trial import RacesSought, seek_races
from pipeline.verify.harness.session import ModelSubject, ProcessEnded, Session, refusal
from pipeline.verify.oracle.input_variations import NOT_SHOWN, STRIDED
from pipeline.verify.oracle.trivial_answers import summarize

LOG = "log.txt"
_PESSIMISM = 4.0  # by how much an estimate may be too high: few large blocks take less than many small ones
_RESERVE = 0.4  # of the time that is left: what would take more is not tried
_MAYBE_RACES = (Outcome.WRONG_VALUE, Outcome.NONDETERMINISTIC)
"""What a data race looks like that came to pass: the race itself is what the author has to know."""
_HANGS = 20.0  # times the slowest call before: what takes longer has not only a slow interpreter
_ENDURANCE = 8  # calls for each repetition in the settings
_SHUFFLE = random.SystemRandom()


_BACKWARD_NOT_JUDGED = "its backward was not judged: problem.py does not set check_grad = True"


def model_subject(
    path: Path,
    *,
    where: JudgedWhere,
    device: DeviceKind = HOST,
    limits: dict[str, int],
    settings: Verify,
) -> ModelSubject:
    """A candidate's file; `limits`: of the hardware target that it is shown."""
    text = path.read_text(errors="replace")
    builds = may_build(text)
    header = _compiled_header() if builds and where == "interpreter" and "__global__" in text else None
    return ModelSubject(
        candidate=ModelFile(
            source=str(path.absolute()), where=where, device=device, limits=limits, header=header
        ),
        settings=settings,
        builds=builds,
        has_backward="def backward(" in text,
    )


def _compiled_header() -> str | None:
    """For sources in a language that is emulated in extensions."""
    emulation = emulated_extensions()
    header = None if emulation is None else extension_headers.for_next_build(emulation.compiling)
    return None if header is None else str(header)


class ModelTrialResult(Record, frozen=True, kw_only=True, eq=False):
    """How it went."""

    failure: Failure | None
    share: float | None
    checks: tuple[str, ...]
    calls: int
    peak_memory: int
    """Bytes of the candidate's process that were resident at most."""
    conditions: tuple[str, ...]
    notes: tuple[str, ...]
    isolation: tuple[str, ...]
    launched: tuple[str, ...]
    """Kinds of its own kernels that ran."""
    interpreted: tuple[InterpretedLaunch, ...] = ()
    """Launches in the interpreter for the problem's own inputs, each once."""
    untried: str = ""
    """Why the declared sizes were not tried, and which ones were."""
    too_slow: bool = False
    """Whether the interpreter could not make enough calls on these sizes: smaller ones may tell more."""
    until_failure: tuple[MadeCall, ...]
    """All calls up to the one that failed, or to the last one."""


def try_candidate(
    server: ForkServer, subject: ModelSubject, case_set: ModelCaseSet, folder: Path
) -> ModelTrialResult:
    """Judge one candidate; what it prints goes to `log.txt` in `folder`."""
    layout = layout_for(case_set.plans, gradients=case_set.check_gradients)
    with CandidateMemory(layout.size) as memory, scratch_folder() as scratch:
        with Session(server, subject, memory, log=folder / LOG, scratch=scratch) as session:
            trial = _Trial(JudgedCalls(CandidateProxy(session, memory, layout), case_set), case_set, subject)
            failure = trial.run()
        failure = failure or session.finish()
        failure = with_place(
            failure,
            subject.candidate.device,
            functools.partial(Session, server, subject, memory),
            lambda again: JudgedCalls(CandidateProxy(again, memory, layout), case_set).repeat(
                trial.calls.until_failure
            ),
            crashed=session.crashed,
        )
    races = trial.seek_races(server, folder) if failure is None or failure.outcome in _MAYBE_RACES else None
    failure = failure if races is None else races.failure or failure
    if failure is not None:
        failure = _with_complaint(failure, folder / LOG)
        _conclude(folder / LOG, failure)
    calls = trial.calls
    launches = {each.kind for seen in calls.seen for each in seen.done.observed.launches}
    return ModelTrialResult(
        failure=failure,
        share=calls.share,
        checks=(*calls.checks, *trial.closed, *(["races"] if races is not None and races.calls else [])),
        calls=calls.attempt.calls + (0 if races is None else races.calls),
        peak_memory=session.peak_memory,
        conditions=tuple(dict.fromkeys(seen.case.condition.label for seen in calls.seen)),
        notes=(*trial.notes(failure), *_unsought(races)),
        isolation=session.isolation,
        launched=tuple(sorted(launches)),
        interpreted=_interpreted(calls),
        untried=trial.untried,
        too_slow=trial.too_slow,
        until_failure=calls.until_failure if races is None or races.call is None else (races.call,),
    )


def _unsought(races: RacesSought | None) -> tuple[str, ...]:
    if races is None or not races.unsought:
        return ()
    return (f"races between threads were not sought: {races.unsought}",)


def _with_complaint(failure: Failure, log: Path) -> Failure:
    """What a compiler printed that the candidate started itself, of which its exception says nothing."""
    if failure.outcome is not Outcome.COMPILE_ERROR or not failure.reason.startswith("CalledProcessError"):
        return failure
    complaint = first_complaint(log.read_text(errors="replace"))
    return failure if complaint is None else msgspec.structs.replace(failure, reason=one_line(complaint))


def _conclude(log: Path, failure: Failure) -> None:
    """End the log with the verdict: a crash prints nothing itself, and a reader starts from the log."""
    with log.open("a") as stream:
        stream.write(f"\njudge: {failure.outcome}: {failure.reason}\n")


class _Trial:
    """One candidate being tried."""

    def __init__(self, calls: JudgedCalls, case_set: ModelCaseSet, subject: ModelSubject) -> None:
        self.calls = calls
        self.closed: tuple[str, ...] = ()
        """Checks that are made once, after all calls."""
        self._case_set = case_set
        self._subject = subject
        self._settings = subject.settings
        self._interpreted = subject.candidate.where == "interpreter"
        self._skipped: list[CasePlan] = []
        self._differing = 0
        self._not_shown = [
            plan
            for plan in case_set.plans
            if plan.condition.variation in NOT_SHOWN and not subject.settings.strict_inputs
        ]
        self._closing_notes: list[str] = []
        self.untried = ""
        """Why the declared sizes were not tried."""
        self.too_slow = False

    def run(self) -> Failure | None:
        """Until the first failure; None where there was none."""
        try:
            self.calls.load()
            self._calls()
            self._require_enough()
            self.closed, self._closing_notes = final_checks(
                self.calls, self._case_set, self._settings, on_host=self._subject.on_host
            )
            self._try_full()
            self._try_not_shown()
        except CandidateFailed as failed:
            return failed.failure
        except ProcessEnded as ended:
            return self._interpreter_failed(ended) if self._interpreted else ended.failure
        return None

    def seek_races(self, server: ForkServer, folder: Path) -> RacesSought | None:
        """In native code with threads, of which this process is not the first; None where there is none."""
        if not self._settings.thread_counts or not self._subject.on_host:
            return None
        if not any(seen.done.observed.starts_threads for seen in self.calls.seen):
            return None
        tried = sorted(self.calls.quickest.values(), key=lambda each: each[0])
        plans = [plan for _, plan in tried if id(plan) not in self.calls.refused]
        if not plans:
            return None
        return seek_races(server, self._subject, self._case_set, plans, folder)

    def _interpreter_failed(self, ended: ProcessEnded) -> Failure | None:
        """The failure, or None where only the interpreter was too slow: the kernel was right until then."""
        seconds = self.calls.slowest
        if ended.failure.outcome is not Outcome.TIMEOUT or ended.allowed > _HANGS * seconds:
            self.too_slow = ended.failure.outcome is Outcome.TIMEOUT and not seconds
            return ended.failure
        try:
            self._require_enough()
            self.closed, self._closing_notes = work_alone(self.calls, self._settings)
        except CandidateFailed as failed:
            return failed.failure
        self.untried = f"right as far as it was tried; the interpreter was too slow: {ended.failure.reason}"
        self.calls.attempt.session.excuse()
        return None

    def _calls(self) -> None:
        """The base first and again, the rest in random order, the base again at other addresses.

        One of each kind comes before all others of the rest, for which a slow candidate may leave no time.
        """
        plans = self._case_set.plans
        base = [plan for plan in plans if plan.condition.kind == "base"]
        first = self.calls.judged(base[0], CallOptions(settle=self._settings.settle_seconds))
        for _ in range(self._settings.repetitions - 1):
            again = self._in_time(base[0], CallOptions())
            if first is not None and again is not None:
                self._differing += differing(first.outputs, again.outputs)
        for plan in base[1:]:
            self._in_time(plan, CallOptions())
        for plan in base:
            self._in_time(plan, CallOptions(same_objects=True))
        rest = [plan for plan in plans if plan.condition.kind not in ("base", "declared", "full")]
        rest = [plan for plan in rest if not any(plan is each for each in self._not_shown)]
        _SHUFFLE.shuffle(rest)
        leading = {id(plan) for plan in {plan.condition.kind: plan for plan in rest}.values()}
        rest.sort(key=lambda plan: (id(plan) not in leading, plan.identity != base[0].identity))
        for plan in rest:
            self._in_time(plan, CallOptions())
        declared = [plan for plan in plans if plan.condition.kind == "declared"]
        # Who refuses the reduced sizes must be right on the declared ones, and not only once.
        for plan in declared[: 1 if first is not None else None]:
            self._in_time(plan, CallOptions())
        self._in_time(base[0], CallOptions(shift=SHIFT, threads=2))
        for _ in range(self._settings.repetitions if self.calls.native else 0):
            for threads in THREADS:
                self._in_time(_SHUFFLE.choice(base), CallOptions(threads=threads))
        for lead in (1, ALIGNED_LEAD):  # who refuses the first, whose addresses are odd, must take the other
            self.calls.unaligned = None
            self._in_time(base[0], CallOptions(lead=lead))
            if self.calls.unaligned is None:
                break
        self._change_weights(base[0])
        self._endure(base)

    def _change_weights(self, base: CasePlan) -> None:
        """Between calls of one instance, in place and by `load_state_dict`: what was packed must follow.

        All of them, and those alone that are constructed as 1 or 0, as of a normalisation that is folded in.
        """
        others = [plan for plan in self._case_set.plans if plan.condition.kind == "weights"]
        # Where some are constructed as 1 everywhere, these must change as well.
        others.sort(key=lambda plan: plan.condition.constants == "as constructed")
        other = next(iter(others), None)
        if other is None or id(other) in self.calls.refused or not differ_by_weights(base, other):
            return
        self._in_time(base, CallOptions())
        changes: list[tuple[CasePlan, WeightUpdate]] = [(other, "in place"), (base, "load_state_dict")]
        plain = next((plan for plan in others if plan.condition.constants == "as constructed"), None)
        if plain is not None and other.condition.constants != "as constructed":
            changes += [(plain, "in place"), (other, "in place")]
        for plan, how in changes:
            slow = self.calls.pace * plan.work > _RESERVE * self.calls.attempt.session.left
            if slow or not self.calls.attempt.state.same_names or self.calls.changed(plan, how) is None:
                return

    def _try_full(self) -> None:
        """The declared sizes once, last: what takes longer than it may is ended."""
        budget, sizes = self._settings.declared_seconds, self._case_set.reduced
        declared = [plan for plan in self._case_set.plans if plan.condition.kind in ("declared", "full")]
        tried = {id(seen.case.plan) for seen in self.calls.seen} | set(self.calls.refused)
        if not sizes or any(id(plan) in tried for plan in declared):
            return
        full = next(iter(declared), None)
        self._skipped = [plan for plan in self._skipped if plan is not full]
        if full is None:
            large = self._case_set.too_large or "Model does not run on them"
            self.untried = f"right on {sizes} and smaller; the declared sizes are too large here: {large}"
            return
        if self.calls.attempt.session.excused:
            self.untried = (
                f"right on {sizes} and smaller; it ended its process when its kernels were left out"
            )
            return
        base = self._case_set.plans[0]
        seconds = self.calls.pace * base.work * max(full.work / base.work, self._case_set.growth)
        if self._interpreted and seconds > _PESSIMISM * budget:  # a processor computes more in the same time
            self.untried = (
                f"right on {sizes} and smaller; a call on the declared sizes would take about {seconds:.0f} s"
                f" here, more than declared_seconds={budget:g}"
            )
            return
        self.calls.attempt.session.allow(budget)
        try:
            self.calls.judged(full, CallOptions())
        except (CandidateFailed, ProcessEnded) as ended:
            why = {
                Outcome.TIMEOUT: f"takes longer here than declared_seconds={budget:g}",
                Outcome.OUT_OF_MEMORY: "needs more memory than a candidate has here",
            }.get(ended.failure.outcome)
            if why is None:
                raise
            if isinstance(ended, ProcessEnded):
                self.calls.attempt.session.excuse()
            self.untried = f"right on {sizes} and smaller; a call on the declared sizes {why}"

    def _try_not_shown(self) -> None:
        """What the problem does not show, after all that decides: a note where the candidate is not right."""
        if self.calls.attempt.session.excused:
            return
        for plan in self._not_shown:
            try:
                self._in_time(plan, CallOptions())
            except (CandidateFailed, ProcessEnded) as failed:
                if failed.failure.outcome is Outcome.TAMPERED:
                    raise
                if failed.failure.outcome is not Outcome.TIMEOUT:  # its time may have been used up before
                    views = f"{VIEWS}: " if plan.condition.variation == STRIDED else ""
                    self._closing_notes.append(f"{FRAGILE}{views}{failed.failure.reason}")
                if isinstance(failed, ProcessEnded):
                    self.calls.attempt.session.excuse()
                    return
            self.calls.quickest.pop(id(plan), None)

    def _endure(self, base: Sequence[CasePlan]) -> None:
        """Many more calls, of the shortest: a candidate that counts its calls does not know when they end."""
        tried = sorted(self.calls.quickest.values(), key=lambda each: each[0])
        small = [plan for _, plan in tried if id(plan) not in self.calls.refused][:3]
        for _ in range(_ENDURANCE * self._settings.repetitions if small else 0):
            self._in_time(_SHUFFLE.choice(small), CallOptions())
        self._in_time(_SHUFFLE.choice(base), CallOptions())

    def _in_time(self, plan: CasePlan, options: CallOptions) -> ObservedCall | None:
        """Unless it would take too long: what a slow interpreter cannot do says nothing about a kernel."""
        shortest = min((seconds for seconds, _ in self.calls.quickest.values()), default=0.0)
        if max(self.calls.pace * plan.work, shortest) > _RESERVE * self.calls.attempt.session.left:
            self._skipped.append(plan)
            return None
        return self.calls.judged(plan, options)

    def _require_enough(self) -> None:
        """Right is who was right at least twice on equal sizes, with other data in between."""
        own = [seen.case for seen in self.calls.seen if seen.case.condition.kind in _OWN]
        if len({id(case) for case in own}) >= 2:
            return
        if self.calls.refused:
            answer = next(iter(self.calls.refused.values()))
            reason = f"refuses all sizes that can be tried here: {refusal(answer, '').reason}"
            raise CandidateFailed(Failure(outcome=Outcome.DEVICE_UNAVAILABLE, reason=reason))
        reason = "too slow here to be called twice on the problem's own inputs"
        self.too_slow = self._interpreted
        slow = Outcome.DEVICE_UNAVAILABLE if self._interpreted else Outcome.TIMEOUT
        raise CandidateFailed(Failure(outcome=slow, reason=reason))

    def notes(self, failure: Failure | None) -> list[str]:
        """What a reader should know in addition to the failure."""
        calls, found = self.calls, list(self._case_set.notes)
        found += [] if self._case_set.tolerance_note is None else [self._case_set.tolerance_note]
        labels = {id(plan): plan.condition.label for plan in self._case_set.plans}
        refused: dict[str, list[str]] = {}
        for each, answer in calls.refused.items():
            refused.setdefault(answer.reason, []).append(labels[each].rpartition(", ")[0])
        found += [f"refused {'; '.join(dict.fromkeys(where))}: {why}" for why, where in refused.items()]
        if self._skipped:
            labelled = "; ".join(dict.fromkeys(plan.condition.label for plan in self._skipped))
            found.append(f"not tried, too slow here: {labelled}")
        if calls.unaligned is not None:
            found.append(f"refuses inputs that begin inside of their storage: {calls.unaligned.reason}")
        if calls.kept_elsewhere:
            names = ", ".join(calls.kept_elsewhere)
            found.append(f"holds {names} in a form of its own: not tried with other values")
        if self._differing:
            found.append(f"{self._differing} elements differ between equal calls, within the bound")
        if not self._case_set.check_gradients and self._subject.has_backward:
            found.append(_BACKWARD_NOT_JUDGED)
        strange = next((text for seen in calls.seen if (text := _strange_strides(seen))), None)
        found += [] if strange is None else [strange]
        if failure is None or failure.outcome is not Outcome.TAMPERED:  # its reason says whose work it is
            shown = [seen for seen in calls.seen if seen.case.condition.variation not in NOT_SHOWN]
            part = computed_by_torch([seen.done.observed for seen in shown])
            found += [] if part is None else [part]
        return [*found, *_weakness(calls), *self._closing_notes]


def _interpreted(calls: JudgedCalls) -> tuple[InterpretedLaunch, ...]:
    own = [seen.done.observed for seen in calls.seen if seen.case.condition.kind in _OWN]
    found = {repr(each): each for observed in own for each in observed.interpreted}
    return tuple(found.values())[:_MOST_INTERPRETED]


_MOST_INTERPRETED = 64


def _strange_strides(seen: ObservedCall) -> str:
    """Of the first output that is neither laid out as the reference's, nor contiguous, nor as an input."""
    for got, wanted in zip(seen.done.outputs, seen.case.plan.outputs, strict=True):
        if not fitting_strides(got, wanted, seen.case.plan):
            return f"{got.name} has strides {got.strides}, the reference's {wanted.strides}"
    return ""


def _weakness(calls: JudgedCalls) -> list[str]:
    """Trivial answers that would have passed every case."""
    cases = {seen.case.condition.label: seen.case for seen in calls.seen}
    answers = {
        label: case.trivial
        for label, case in cases.items()
        if any(expected.reference.numel() for expected in case.expected)
    }
    weak = summarize(answers).task
    return (
        [f"weakly_checked: {', '.join(weak).replace('input input', 'input')} would pass as well"]
        if weak
        else []
    )


_OWN = ("base", "declared", "group")
