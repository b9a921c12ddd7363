"""Judges one submitted source of one problem: a text in, its verdict out, without Snakemake.

The stage is the one of `kernelmill judge`, run in the warm worker; its specs, outputs and store entries are
those of every judging. Several servers on one store share the cores and never judge the same text twice.
"""

import contextlib
import os
import threading
import time
from pathlib import Path

import msgspec

from pipeline.backends.devices.device_registry import executes_on_host
from pipeline.execution.judging_run import PROFILE, UNSTORED
from pipeline.execution.stage_commands import TIME_IS_UP, Command, StageCommands, run_all
from pipeline.plan.judging import Judging, JudgingRequest, plan_judging
from pipeline.plan.spec_files import write_spec
from pipeline.records.errors import ConfigError, hint
from pipeline.records.layout import entry_path, spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import key_of
from pipeline.records.record import Record, read_record
from pipeline.records.results.judged import JudgeOutput, JudgeSpec, ProblemFolder, Verdict
from pipeline.records.results.timed import TimedRecord, TimingOutput, TimingSpec
from pipeline.stages.judge import entry_of
from pipeline.stages.timing import entry_of as timed_entry_of
from pipeline.store.attempt_history import locked, source_path
from pipeline.verify.candidates.kernelbench import candidate_file, problem_folder

NAME = "agent"
"""How the keys of its specs begin."""


class SingleVerdict(Record, frozen=True, kw_only=True):
    """What a submission came to."""

    verdict: Verdict
    known: bool
    """Whether the store had it."""
    seconds: float
    """From the start of the stage to its end."""


class SingleTiming(Record, frozen=True, kw_only=True):
    """What measuring a submission came to."""

    record: TimedRecord | None
    """None if the stage did not end."""
    error: str | None
    seconds: float
    """0 if the store had it."""


class SubmissionJudge:
    """Judges submissions to the problems of one folder."""

    def __init__(self, folder: Path, *, hardware: str, verify: str, store: Path) -> None:
        """Plan them.

        Raises
        ------
        ConfigError
            The folder holds no problem, or there is no such option.
        """
        self._folder, self._hardware, self._verify = folder, hardware, verify
        self._store = store
        self._planning = threading.Lock()
        """Hydra has one state for all threads of a process."""
        judging = self._planned()
        self._keys, self._timings = _keys_of(judging), judging.timings
        self.complaints = tuple(
            f"{each.path}: {each.failure.reason}" for each in judging.problems.values() if each.failure
        )
        """Why problems cannot be judged, one line each."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the problems."""
        return tuple(self._keys)

    def spec(self, problem: str) -> JudgeSpec:
        """What a problem is judged with.

        Raises
        ------
        ConfigError
            There is no problem of that name.
        """
        if problem not in self._keys:
            raise ConfigError(f"no problem '{problem}'{hint(problem, self._keys)}")
        spec = self._read(problem)
        folder = Path(spec.problem.path).parent
        if problem_folder(folder, name=problem, root=folder).digest != spec.problem.digest:  # it was edited
            with self._planning:
                judging = self._planned()
                self._keys, self._timings = _keys_of(judging), judging.timings
            return self.spec(problem) if problem not in self._keys else self._read(problem)
        return spec

    def judge(self, problem: str, source: str, seconds: float) -> SingleVerdict:
        """The verdict on a stored source, after `seconds` at the latest, waiting for other clients included.

        Raises
        ------
        ConfigError
            There is no problem of that name.
        """
        spec = self._spec_of(problem, source)
        (candidate,) = spec.problem.candidates
        key = key_of(NAME, spec)
        deadline = time.monotonic() + seconds
        command = StageCommands(self._store, 1).of_keys("judge", {"judge": key})
        entry = entry_path(self._store, "judge", entry_of(spec, candidate))
        try:
            with contextlib.ExitStack() as locks:
                locks.enter_context(locked(self._store, key, deadline=deadline))
                known = command.done or entry.is_dir()
                if not known:
                    locks.enter_context(locked(self._store, *_slots(), deadline=deadline))
                write_spec(self._store, "judge", key, spec)
                return _ended(command, spec, known=known, deadline=deadline)
        except TimeoutError:
            return _unjudged(spec, f"other judgements took all of the {seconds:g} s that a call may take")

    def time(self, problem: str, source: str, seconds: float) -> SingleTiming:
        """Measure a source that passed, after `seconds` at the latest; nothing is judged here meanwhile.

        Raises
        ------
        ConfigError
            There is no problem of that name.
        """
        judged = self._spec_of(problem, source)
        (candidate,) = judged.problem.candidates
        parent = key_of(NAME, judged)
        spec = read_record(spec_path(self._store, "timing", self._timings[self._keys[problem]]), TimingSpec)
        spec = msgspec.structs.replace(spec, problem=judged.problem, parent=parent)
        key = key_of(NAME, spec)
        command = StageCommands(self._store, 1).of_keys("timing", {"timing": key, "judge": parent})
        entry = entry_path(self._store, "timing", timed_entry_of(spec, candidate))
        deadline = time.monotonic() + seconds
        try:
            with contextlib.ExitStack() as locks:
                locks.enter_context(locked(self._store, key, deadline=deadline))
                known = command.done or entry.is_dir()
                alone = _slots() if executes_on_host(spec.target.kind) and not known else []
                for slot in alone:  # all of them, in one order
                    locks.enter_context(locked(self._store, slot, deadline=deadline))
                write_spec(self._store, "timing", key, spec)
                return _timed(command, known=known, deadline=deadline)
        except TimeoutError:
            late = f"other judgements took all of the {seconds:g} s that a call may take"
            return SingleTiming(record=None, error=late, seconds=0.0)

    def _spec_of(self, problem: str, source: str) -> JudgeSpec:
        """What a stored source is judged with."""
        path = source_path(self._store, source).absolute()
        candidate = candidate_file(path, path.parent)
        candidate = msgspec.structs.replace(candidate, name=source)
        spec = self.spec(problem)
        folder: ProblemFolder = msgspec.structs.replace(spec.problem, candidates=(candidate,))
        return msgspec.structs.replace(spec, problem=folder)

    def _read(self, problem: str) -> JudgeSpec:
        return read_record(spec_path(self._store, "judge", self._keys[problem]), JudgeSpec)

    def _planned(self) -> Judging:
        request = JudgingRequest(
            folder=self._folder,
            hardware=self._hardware,
            verify=self._verify,
            profile=PROFILE,
            candidates="submitted",
        )
        return plan_judging(request, root=Path.cwd(), store=self._store)


def _keys_of(judging: Judging) -> dict[str, str]:
    return {problem.name: key for key, problem in judging.problems.items()}


def _slots() -> list[str]:
    """One judgment per core, for all clients together."""
    return [f"core {number}" for number in range(len(os.sched_getaffinity(0)))]


def _ended(command: Command, spec: JudgeSpec, *, known: bool, deadline: float) -> SingleVerdict:
    started = time.monotonic()
    if not command.done:
        (ended,) = run_all([command], cores=1, deadline=deadline, say=lambda _: None)
        if ended.error is not None:
            late = ended.error.startswith(TIME_IS_UP)
            return _unjudged(
                spec, "it took longer than a call may take" if late else ended.error, ended.seconds
            )
    output = Path(str(command.output))
    (verdict,) = read_record(output, JudgeOutput).verdicts
    if verdict.outcome is Outcome.NOT_JUDGED:  # another attempt may come to a verdict
        output.unlink()
    return SingleVerdict(verdict=verdict, known=known, seconds=time.monotonic() - started)


def _timed(command: Command, *, known: bool, deadline: float) -> SingleTiming:
    started = time.monotonic()
    if not command.done:
        (ended,) = run_all([command], cores=command.cores, deadline=deadline, say=lambda _: None)
        if ended.error is not None:
            late = ended.error.startswith(TIME_IS_UP)
            reason = "it took longer than a call may take" if late else ended.error
            return SingleTiming(record=None, error=reason, seconds=ended.seconds)
    output = Path(str(command.output))
    (record,) = read_record(output, TimingOutput).records
    failure = record.result if isinstance(record.result, Failure) else None
    if failure is not None and failure.outcome in UNSTORED:  # the next attempt may come to a time
        output.unlink()
    seconds = 0.0 if known else time.monotonic() - started
    error = None if failure is None else f"{failure.outcome}: {failure.reason}"
    return SingleTiming(record=record, error=error, seconds=seconds)


def _unjudged(spec: JudgeSpec, reason: str, seconds: float = 0.0) -> SingleVerdict:
    (candidate,) = spec.problem.candidates
    failure = Failure(outcome=Outcome.NOT_JUDGED, reason=reason)
    verdict = Verdict(
        problem=spec.problem.name, solution=candidate.name, outcome=failure.outcome, reason=failure.reason
    )
    return SingleVerdict(verdict=verdict, known=False, seconds=seconds)
