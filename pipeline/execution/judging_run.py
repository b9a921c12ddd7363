"""Judge candidates from anywhere: a folder of problems in, a table of verdicts out, through Snakemake."""

import contextlib
import faulthandler
import glob
import json
import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TextIO, cast, get_args

import msgspec

from pipeline.backends.registry import backend, candidate_backends
from pipeline.execution.failure_listing import PASSED, SHOWN, failure_lines, judged_reasons
from pipeline.execution.measured_candidates import timing_lines
from pipeline.execution.run_display import JobLabels
from pipeline.execution.snakemake_command import SnakemakeExit, is_looking, run_snakemake
from pipeline.execution.snakemake_internals import only_progress
from pipeline.execution.submissions import SubmissionRequest, hand_in, scored, submission_lines
from pipeline.execution.workflow import LOCK, ROOT, share
from pipeline.interop.problem_sets.flashinfer.data_set import is_data_set
from pipeline.interop.problem_sets.flashinfer.solution_traces import write_traces
from pipeline.performance.quantities import counted
from pipeline.plan.judging import Candidates, Judging, JudgingRequest, plan_judging
from pipeline.records.environment import jobs_end_with_this, prefer_programs_in
from pipeline.records.errors import ConfigError, KernelmillError, StoreError, explained, hint
from pipeline.records.layout import spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record, read_record, to_json
from pipeline.records.results.judged import (
    FRAGILE,
    VIEWS,
    CandidateFile,
    JudgeOutput,
    JudgeRecord,
    JudgeSpec,
    ProblemFolder,
    Verdict,
)
from pipeline.records.results.timed import TimedRecord, TimingOutput
from pipeline.stages.judge import known_verdict
from pipeline.store.entries import RECORD
from pipeline.store.run_lock import take_lock
from pipeline.verify.candidates.verdict_table import summary, write_table

CONFIG_KEYS = ("problems", "hardware", "verify", "candidates", "only", "measure", "profile", "store")
PROFILE = "candidates"
"""Preset of conf/profile, unless another one is named."""
SHORTEST_ID = 4


Output = Literal["progress", "quiet", "json"]
UNSTORED = frozenset({Outcome.UNSTABLE_TIMING, Outcome.DEVICE_UNAVAILABLE})
"""Outcomes of a measurement that the next run may replace."""
NO_VERDICT = frozenset({Outcome.BAD_PROBLEM, Outcome.NOT_JUDGED})
"""Outcomes of candidates that nobody could judge."""
_CORRECT = "correct: the fault depends on chance, or on the process that it was found in"
_UNSEEN = "correct, as it was: the fault is not in the result of forward, and nothing else is observed here"


class JudgingResult(Record, frozen=True, kw_only=True):
    """What a judging came to, for programs."""

    verdicts: tuple[Verdict, ...]
    timed: tuple[TimedRecord, ...] | None
    """Candidates that passed; None where nothing was timed."""
    failed_jobs: tuple[str, ...]
    table: str
    traces: str | None


def judge(
    request: JudgingRequest,
    *,
    out: Path,
    cores: str,
    output: Output,
    submitted: tuple[str, str] | None = None,
) -> int:
    """Plan, run Snakemake, write and print what exists then; returns the exit code.

    `submitted`: name of the submission that it is, and option of conf/tracking.

    Raises
    ------
    KeyboardInterrupt
        The user stopped it; a table that was there before is left as it was.
    """
    folder = request.folder
    submission = None if submitted is None else SubmissionRequest.of(*submitted)
    judging = plan_judging(request, root=Path.cwd(), store=ROOT)
    _check_writable(out)
    for line in judging.complaints:
        print(line, file=sys.stderr)
    _forget_unjudged(judging)
    ended = _run(judging, request, cores, quiet=output != "progress")
    verdicts, timed = collect(judging), collect_timed(judging)
    if ended.interrupted:
        print(_stopped(verdicts, timed, out), file=sys.stderr, flush=True)
        raise KeyboardInterrupt
    write_table(out, verdicts, timed)
    traces = out.with_suffix(".jsonl") if is_data_set(folder) else None
    if traces is not None:
        write_traces(folder, verdicts, traces)
    result = JudgingResult(
        verdicts=tuple(verdicts),
        timed=None if timed is None else tuple(timed),
        failed_jobs=ended.failed_jobs,
        table=str(out),
        traces=None if traces is None else str(traces),
    )
    print(to_json(result).decode() if output == "json" else text(result), flush=True)
    if submission is not None:
        lines = submission_lines(hand_in(submission, judging, verdicts, timed))
        print("\n".join(lines), file=sys.stderr if output == "json" else sys.stdout, flush=True)
    unjudged = any(verdict.outcome is Outcome.NOT_JUDGED for verdict in verdicts)
    nothing = all(verdict.outcome in NO_VERDICT for verdict in verdicts)
    return int(unjudged or nothing or bool(ended.failed_jobs))


def _stopped(verdicts: Sequence[Verdict], timed: Sequence[TimedRecord] | None, out: Path) -> str:
    """Write those that there are, unless a table of an earlier run would be lost."""
    judged = [verdict for verdict in verdicts if verdict.outcome is not Outcome.NOT_JUDGED]
    text = f"{len(judged)} of {counted(len(verdicts), 'candidate')} judged"
    if out.exists():
        return f"{text}; {out} is as it was before"
    write_table(out, judged, timed)
    return f"{text}: {out}"


def _run(judging: Judging, request: JudgingRequest, cores: str, *, quiet: bool) -> SnakemakeExit:
    # Every file is named after all that it depends on: if they exist, there is nothing to do.
    files = [*map(_output, judging.problems), *map(_timed_output, judging.timings.values())]
    if all(file.is_file() for file in files):
        return SnakemakeExit(code=0, interrupted=False)
    chosen = [f"problems={request.folder}", f"hardware={request.hardware}", f"verify={request.verify}"]
    chosen.append(f"candidates={request.candidates}")
    if request.only:
        chosen.append(f"only={json.dumps(request.only)}")
    if request.profile is not None:
        chosen += ["measure=true", f"profile={request.profile}"]
    jobs = {("judge", key): problem for key, problem in judging.problems.items()}
    jobs |= {("timing", timing): judging.problems[key] for key, timing in judging.timings.items()}
    labels = JobLabels(
        titles={job: problem.name for job, problem in jobs.items()},
        # How many are timed is known when they are judged.
        variants={job: len(problem.candidates) for job, problem in jobs.items() if job[0] == "judge"},
    )
    return run_snakemake(["--cores", cores, "judge", "--config", *chosen], labels=labels, quiet=quiet)


def text(result: JudgingResult) -> str:
    """Why candidates did not pass, which ones did, how fast they are, and where the table is."""
    failures = judged_reasons(result.verdicts, ROOT)
    heading = f"{len(failures)} of {counted(len(result.verdicts), 'candidate')} did not pass:"
    lines = failure_lines(failures, heading=heading)
    if result.timed:
        lines += ["", *timing_lines(result.timed)]
    ended = _after_timing(result)
    lines += ["", summary(ended), *_promoted(result.verdicts, ended)]
    for outcome in PASSED:
        passed = [each for each in ended if each.outcome is outcome]
        for where in dict.fromkeys(each.where for each in passed):
            names = [f"{each.problem}/{each.solution}" for each in passed if each.where == where]
            left = len(names) - SHOWN
            more = f" and {left} more" if left > 0 else ""
            lines.append(f"{outcome:<9} {', '.join(names[:SHOWN])}{more} (ran on: {where})")
    lines += list(_fragile(result.verdicts))
    lines.append(f"verdicts  {result.table}")
    return "\n".join(["", *lines, *([f"traces    {result.traces}"] if result.traces else [])])


def _after_timing(result: JudgingResult) -> list[Verdict]:
    """Verdicts with the outcomes that the leaderboard counts: timing may confirm one, or find a cheat."""
    times = {(each.problem, each.solution): each for each in result.timed or ()}
    return [
        msgspec.structs.replace(
            each, outcome=scored(each, times.get((each.problem, each.solution)), 0, "").outcome
        )
        for each in result.verdicts
    ]


def _promoted(judged: Sequence[Verdict], ended: Sequence[Verdict]) -> Iterator[str]:
    """How many passed on the declared sizes only when they were timed there."""
    pairs = zip(judged, ended, strict=True)
    count = sum(
        before.outcome is Outcome.PASSED_REDUCED and after.outcome is Outcome.PASSED
        for before, after in pairs
    )
    if count:
        yield f"          {count} passed: judged on reduced sizes, right on the declared ones when timed"


def _fragile(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What is right on all that its problem shows, and fails beyond it."""
    notes = [
        (f"{each.problem}/{each.solution}", note.removeprefix(FRAGILE))
        for each in verdicts
        for note in each.notes
        if note.startswith(FRAGILE)
    ]
    views = [name for name, note in notes if note.startswith(VIEWS)]
    found = [f"{name}: {note}" for name, note in notes if not note.startswith(VIEWS)]
    if views:
        left = len(views) - SHOWN
        found.insert(0, f"{', '.join(views[:SHOWN])}{f' and {left} more' if left > 0 else ''}: {VIEWS}")
    yield from (f"fragile   {line}" for line in found[:SHOWN])
    if len(found) > SHOWN:
        yield f"fragile   and {len(found) - SHOWN} more: see the column notes"


def repeat(identifier: str) -> int:
    """Make the call again that decided a verdict, in this process; 0 if it is right now, 1 if it is not.

    Raises
    ------
    ConfigError
        There is no such verdict, or it passed.
    """
    name = glob.escape(identifier)
    found = [path for path in (ROOT / "store" / "judge").glob(f"{name[:2]}/{name}*") if path.is_dir()]
    if len(found) != 1 or len(identifier) < SHORTEST_ID:
        problem = "no verdict has" if not found else "several verdicts begin with"
        raise ConfigError(f"--repeat {identifier}: {problem} this id: expected one of the table's column id")
    if read_record(found[0] / RECORD, JudgeRecord).verdict.outcome is Outcome.PASSED:
        raise ConfigError(f"--repeat {identifier}: this candidate passed, there is no call to repeat")
    if read_record(found[0] / RECORD, JudgeRecord).verdict.where in ("interpreter", "emulator"):
        for each in map(backend, candidate_backends()):  # before anything imports Triton
            os.environ.update({} if each.interpreter is None else each.interpreter.environment)
    # PyTorch warns when it is imported, in the middle of the answer; where the call ran is known.
    logging.getLogger("torch.utils.cpp_extension").addFilter(_is_news)
    from pipeline.verify.harness.failed_call import read_failed_call
    from pipeline.verify.harness.repeated_call import RepeatedCall

    failed = read_failed_call(found[0])
    where = f"the call on {failed.calls[-1].condition.label}" if failed.calls else "its import"
    print(f"problem    {failed.problem}\ncandidate  {failed.candidate}")
    print(f"verdict    {failed.failure.outcome}: {failed.failure.reason}\nrepeated   {where}", flush=True)
    faulthandler.enable()  # a crash names the line of the candidate
    repeated = RepeatedCall(failed)
    result = repeated.alone()
    if result is None and failed.shows_in_result and len(failed.calls) > 1:
        earlier = counted(len(failed.calls) - 1, "call")
        print("now        correct by itself: the fault shows only after other calls")
        print(f"repeated   {where}, after the {earlier} before it", flush=True)
        result = repeated.in_sequence()
    if result is not None:
        print(f"now        {result.outcome}: {result.reason}")
        return 1
    print(f"now        {_CORRECT if failed.shows_in_result else _UNSEEN}")
    return 0


def _is_news(record: logging.LogRecord) -> bool:
    """Whether it is not that there is a CUDA toolkit without a device."""
    return not str(record.msg).startswith("No CUDA runtime is found")


def _check_writable(path: Path) -> None:
    """Before anything is run, not after."""
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ConfigError(f"--out {path}: expected a file in a folder that exists")
    try:  # permissions do not say it of a read-only file system, nor of /proc
        with tempfile.TemporaryFile(dir=path.absolute().parent):
            pass
    except OSError as error:
        raise ConfigError(f"--out {path}: cannot be written: {explained(error)}") from None


def _output(key: str) -> Path:
    return ROOT / "judge" / f"{key}.json"


def _timed_output(key: str) -> Path:
    return ROOT / "timing" / f"{key}.json"


def collect_timed(judging: Judging) -> list[TimedRecord] | None:
    """The measurements of all problems; None where nothing is timed."""
    if not judging.is_timed:
        return None
    records: list[TimedRecord] = []
    for key in judging.timings.values():
        with contextlib.suppress(StoreError):  # the job did not end: it is among those that failed
            records += read_record(_timed_output(key), TimingOutput).records
    return records


def _forget_unjudged(judging: Judging) -> None:
    """What the judge did not come to a verdict on is tried again; the verdicts of the others are kept."""
    for key in judging.problems:
        with contextlib.suppress(StoreError):
            verdicts = read_record(_output(key), JudgeOutput).verdicts
            if any(verdict.outcome is Outcome.NOT_JUDGED for verdict in verdicts):
                _output(key).unlink()
    for key in judging.timings.values():
        with contextlib.suppress(StoreError):
            results = [each.result for each in read_record(_timed_output(key), TimingOutput).records]
            if any(isinstance(each, Failure) and each.outcome in UNSTORED for each in results):
                _timed_output(key).unlink()


def collect(judging: Judging) -> list[Verdict]:
    """The verdicts of all problems; those that a job did not come to are `not_judged`."""
    verdicts: list[Verdict] = []
    for key, problem in judging.problems.items():
        try:
            verdicts += read_record(_output(key), JudgeOutput).verdicts
        except StoreError:  # the job did not end, and its candidates may have their verdicts all the same
            log = ROOT / "logs" / "judge" / f"{key}.log"
            failure = Failure(outcome=Outcome.NOT_JUDGED, reason=f"the job did not end: {log}")
            spec = read_record(spec_path(ROOT, "judge", key), JudgeSpec)
            verdicts += [
                known_verdict(spec, each, ROOT) or _failed(problem, each, failure)
                for each in problem.candidates
            ]
    return verdicts


def _failed(problem: ProblemFolder, candidate: CandidateFile, otherwise: Failure) -> Verdict:
    failure = problem.failure or candidate.failure or otherwise
    return Verdict(
        problem=problem.name, solution=candidate.name, outcome=failure.outcome, reason=failure.reason
    )


def open_judging(config: Mapping[str, Any], *, main: bool, dryrun: bool) -> "JudgingRun":
    """Plan for Snakemake's `--config problems=DIR`; takes the checkout's lock where jobs will run.

    An error that the user can fix is one line, and ends the process.
    """
    if main and not dryrun:
        only_progress()
    prefer_programs_in(Path(sys.executable).parent)
    jobs_end_with_this()
    try:
        if "site" in config:
            raise ConfigError("judge runs on one machine: leave the profile of the cluster out")
        unknown = sorted(set(config) - set(CONFIG_KEYS))
        if unknown:
            raise ConfigError(f"--config {unknown[0]}=…: unknown key{hint(unknown[0], CONFIG_KEYS)}")
        share(config)
        lock = take_lock(LOCK) if main and not dryrun and not is_looking(sys.argv[1:]) else None
        judging = plan_judging(
            _request(config),
            root=Path.cwd(),
            store=ROOT,
        )
    except KernelmillError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    return JudgingRun(judging, lock)


def _request(config: Mapping[str, Any]) -> JudgingRequest:
    measure = str(config.get("measure", False)).lower()
    if measure not in ("true", "false"):
        raise ConfigError(f"--config measure={config['measure']}: expected true or false")
    if measure == "false" and "profile" in config:
        raise ConfigError("--config profile=…: needs measure=true")
    plain = JudgingRequest(folder=Path(str(config["problems"])))
    return plain._replace(
        hardware=str(config.get("hardware", plain.hardware)),
        verify=str(config.get("verify", plain.verify)),
        profile=str(config.get("profile", PROFILE)) if measure == "true" else None,
        candidates=_candidates(str(config.get("candidates", plain.candidates))),
        only=_patterns(config.get("only", [])),
    )


def _candidates(given: str) -> Candidates:
    if given not in get_args(Candidates):
        known = ", ".join(get_args(Candidates))
        raise ConfigError(f"--config candidates={given}: unknown value (known: {known})")
    return cast(Candidates, given)


def _patterns(given: object) -> tuple[str, ...]:
    return tuple(map(str, given)) if isinstance(given, list) else (str(given),)


class JudgingRun:
    """The files of a judging, as rules ask for them."""

    def __init__(self, judging: Judging, lock: TextIO | None) -> None:
        self._judging = judging
        self._lock = lock  # held as long as this object lives
        self.table = str(ROOT / "verdicts" / f"{judging.verdicts}.csv")

    def judged(self, _wildcards: Any) -> list[str]:
        """All problems' verdicts."""
        return [str(ROOT / "judge" / f"{key}.json") for key in self._judging.problems]

    def timed(self, _wildcards: Any) -> list[str]:
        """All problems' measurements; none where nothing is timed."""
        return [str(_timed_output(key)) for key in self._judging.timings.values()]

    def judged_of(self, wildcards: Any) -> str:
        """The verdicts that say what of a problem is timed."""
        keys = {timing: key for key, timing in self._judging.timings.items()}
        return str(_output(keys[wildcards.key]))

    @property
    def measuring_threads(self) -> int:
        """All cores where the processor is what is measured, so that nothing else runs meanwhile."""
        return 1 if self._judging.on_device else os.cpu_count() or 1

    @property
    def measuring_gpus(self) -> int:
        """One, which a measurement has alone."""
        return int(self._judging.on_device)

    def gpus(self, _wildcards: Any) -> int:
        """The GPU if candidates run on one: problem by problem, and not while another job measures there."""
        return int(self._judging.on_device)

    def threads(self, wildcards: Any) -> int:
        """One per candidate: small jobs overlap, a large one has all cores (Snakemake caps the number)."""
        return max(1, len(self._judging.problems[wildcards.key].candidates))
