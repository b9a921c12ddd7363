"""Submissions: verdicts and times of a judged folder in, a stored and tracked submission and the boards out.

A submission is all candidates of one folder under one name. Several candidates of a problem are its samples.
It is scored on all problems of the levels in which it has a candidate.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from pipeline.execution.workflow import ROOT
from pipeline.performance.quantities import counted
from pipeline.plan.judging import Judging, tracking_settings
from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.errors import ConfigError, hint
from pipeline.records.layout import spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record, read_record
from pipeline.records.results.judged import JudgeSpec, ProblemFolder, Verdict
from pipeline.records.results.profiled import Profiled
from pipeline.records.results.scored import (
    CandidateTime,
    HeldOutResult,
    HeldOutVerdict,
    MeasuredSpeedup,
    ScoredCandidate,
    ScoredProblem,
    Submission,
)
from pipeline.records.results.timed import TimedRecord, compared
from pipeline.report.leaderboard.leaderboard_page import leaderboard_page
from pipeline.report.leaderboard.leaderboard_table import candidates_csv
from pipeline.report.leaderboard.standings import BASELINE, Board, BoardFilter, boards
from pipeline.store.atomic import write_atomic
from pipeline.store.current_provenance import provenance
from pipeline.store.submission_files import (
    FOLDER,
    TABLE,
    put_submission,
    read_submissions,
    remove_submission,
    submission_folder,
)

NAME_LENGTH = 100
PAGE = "leaderboard.html"
SEPARATORS = ("/", "\\")
"""Characters that no name of a submission has."""
LEVEL = re.compile(r"level[_ -]?(\d+)(?![^\W_])", re.IGNORECASE)
"""At the beginning of a part of a problem's name, or of its folder's: `level1/…`, `level_2_problem_3`."""
SAMPLE = re.compile(r"sample_?(\d+)(?:_kernel)?$", re.IGNORECASE)
"""At the end of a candidate's name; `_kernel` follows in the folders of KernelBench."""
PASSED = frozenset({Outcome.PASSED, Outcome.PASSED_REDUCED})
"""Verdicts of what is timed."""
NO_TIME = frozenset(
    {
        Outcome.DEVICE_UNAVAILABLE,
        Outcome.NOT_JUDGED,
        Outcome.OUT_OF_MEMORY,
        Outcome.TIMEOUT,
        Outcome.UNSTABLE_TIMING,
    }
)
"""Ends of a measurement that say nothing against a candidate: it is correct and has no time."""
Times = Mapping[tuple[str, str], TimedRecord]
"""By problem and solution."""


class SubmissionRequest(Record, frozen=True, kw_only=True):
    """What judged candidates are handed in as."""

    name: str
    tracking: Tracking

    @classmethod
    def of(cls, name: str, tracking: str) -> "SubmissionRequest":
        """Of a name and an option of conf/tracking.

        Raises
        ------
        ConfigError
            The name cannot be shown in one line, or looks like a path, or there is no such option.
        """
        plain = name.strip()
        if not plain or not plain.isprintable() or len(plain) > NAME_LENGTH:
            raise ConfigError(
                f"--submission {plain[:NAME_LENGTH]!r}: expected 1 to {NAME_LENGTH} printable characters"
            )
        if set(plain) & set(SEPARATORS):  # it names a folder, and would be another one there
            raise ConfigError(f"--submission {plain}: expected a name without {' and '.join(SEPARATORS)}")
        return cls(name=plain, tracking=tracking_settings(tracking, Path.cwd()))


class HandedIn(Record, frozen=True, kw_only=True):
    """Where a submission is."""

    name: str
    rank: str | None
    """On the board of its hardware and problems; None if it was not measured."""
    ranked: int
    """Submissions with a rank on that board."""
    table: str
    page: str
    compare: str | None
    """Address of MLflow's page that compares it with the others; None if nothing was logged."""
    compared: int = 0
    """Submissions on that page."""
    problems: int
    """What it is scored on, invalid problems included."""
    unanswered: int
    """Those of them without a candidate."""
    levels: tuple[str, ...]
    """Levels in which it has a candidate; none if the whole folder is scored."""


def hand_in(
    request: SubmissionRequest,
    judging: Judging,
    verdicts: Sequence[Verdict],
    timed: Sequence[TimedRecord] | None,
) -> HandedIn:
    """Store the submission, make the leaderboard again, and log both to MLflow.

    `timed` is None if nothing was measured.

    Raises
    ------
    TrackingError
        MLflow does not answer; the submission is stored, and the next run logs it.
    """
    made = submission_of(request.name, judging, verdicts, timed)
    stored = put_submission(ROOT, made, candidates_csv(made))
    page, table = ROOT / FOLDER / PAGE, submission_folder(ROOT, stored) / TABLE
    found = boards(read_submissions(ROOT))
    write_page(page, found, csv=None)
    peers = next((board.standings for board in found if board.has(stored)), ())
    ranks = {each.submission.key: each.rank for each in peers if each.best_rank is not None}
    result = HandedIn(
        name=request.name,
        rank=ranks.get(stored.key),
        ranked=len(ranks),
        table=str(table),
        page=str(page),
        compare=None,
        problems=len(stored.problems),
        unanswered=sum(not problem.samples for problem in stored.problems),
        levels=tuple(sorted({level_folder(problem.name) for problem in stored.problems} - {""})),
    )
    if not request.tracking.enabled:
        return result
    from pipeline.track.submission_ingest import SubmissionFiles, track_submission

    kept = table.with_name(page.name)
    write_atomic(kept, leaderboard_page(found, {stored.key: table.name}, None).encode())
    files = SubmissionFiles(table=table, page=kept)  # they are next to each other among the artifacts, too
    tracked = track_submission(request.tracking, stored, files, ROOT)
    return msgspec.structs.replace(result, compare=tracked.compare, compared=tracked.compared)


def submission_lines(result: HandedIn) -> list[str]:
    """For the terminal."""
    rank = "no rank" if result.rank is None else f"rank {result.rank} of {result.ranked}"
    levels = f" of {', '.join(result.levels)}" if result.levels else ""
    missing = f"; {result.unanswered} without a candidate count as failed" if result.unanswered else ""
    lines = [
        f"submitted {result.name}: {rank} (kernelmill leaderboard)",
        f"scored on {counted(result.problems, 'problem')}{levels}{missing}",
        f"ranking   {result.page}",
    ]
    if result.compare is not None:
        lines.append(f"compare   {result.compare} ({counted(result.compared, 'submission')}; kernelmill ui)")
    return lines


def leaderboard(root: Path, wanted: BoardFilter) -> list[Board]:
    """The boards of what is stored.

    Raises
    ------
    ConfigError
        Nothing is, or no submission has the hardware, level or baseline.
    """
    found = read_submissions(root)
    if not found:
        raise ConfigError(
            f"{root / FOLDER}: no submission: kernelmill judge DIR --measure --submission NAME makes one"
        )
    return boards(found, wanted)


def remove(root: Path, name: str, hardware: str | None) -> list[str]:
    """Remove the submissions of one name, for one target or for all; returns a line for each.

    MLflow's runs are kept: what was logged stays there, as when a run is superseded.

    Raises
    ------
    ConfigError
        There is no such submission.
    """
    found = [each for each in read_submissions(root) if hardware in (None, each.hardware)]
    chosen = [each for each in found if each.name == name]
    if not chosen:
        known = sorted({each.name for each in found})
        target = "" if hardware is None else f" for {hardware}"
        raise ConfigError(
            f"--remove {name}: no submission{target} has this name"
            f"{hint(name, known, folder=str(root / FOLDER))}"
        )
    lines = [
        f"removed   {each.name} · {each.hardware} · {each.device} ({remove_submission(root, each)})"
        for each in chosen
    ]
    write_page(root / FOLDER / PAGE, boards(read_submissions(root)), csv=None, root=root)
    return lines


def write_page(path: Path, found: Sequence[Board], *, csv: Path | None, root: Path = ROOT) -> None:
    """Write the leaderboard; its links are relative, so that files can be moved together."""

    def link(target: Path) -> str:
        return Path(os.path.relpath(target.resolve(), path.parent.resolve())).as_posix()

    submissions = [each.submission for board in found for each in board.standings]
    tables = {each.key: link(submission_folder(root, each) / TABLE) for each in submissions}
    write_atomic(path, leaderboard_page(found, tables, None if csv is None else link(csv)).encode())


def submission_of(
    name: str, judging: Judging, verdicts: Sequence[Verdict], timed: Sequence[TimedRecord] | None
) -> Submission:
    """The record of a submission."""
    times = {(each.problem, each.solution): each for each in timed or ()}
    specs = [read_record(spec_path(ROOT, "judge", key), JudgeSpec) for key in judging.problems]
    first = specs[0]
    problems = scored_problems([spec.problem for spec in specs], judging.unanswered)
    by_problem: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_problem.setdefault(verdict.problem, []).append(verdict)
    return Submission(
        name=name,
        hardware=first.hardware,
        device=first.device,
        verify=first.settings.name,
        measured=timed is not None and first.device_present,
        problems=tuple(_problem(each, by_problem.get(each.name, []), times) for each in problems),
        provenance=provenance(first.build),
    )


def scored_problems(
    judged: Sequence[ProblemFolder], unanswered: Sequence[ProblemFolder]
) -> list[ProblemFolder]:
    """All problems of the levels in which at least one has a candidate; of all levels if none has.

    A submission fails on a problem that it leaves out, and takes no part in a level that it leaves out.
    """
    found = [*judged, *unanswered]
    levels = {level_folder(each.name) for each in found if each.candidates}
    return [each for each in found if not levels or level_folder(each.name) in levels]


def level_folder(name: str) -> str:
    """The first folder of a problem's name; empty where it has none: the whole folder is one level."""
    return name.partition("/")[0] if "/" in name else ""


def _problem(problem: ProblemFolder, verdicts: Sequence[Verdict], times: Times) -> ScoredProblem:
    level, category = placed(problem)
    paths = {each.name: each.path for each in problem.candidates}
    numbers = sample_numbers([verdict.solution for verdict in verdicts])
    invalid = [verdict.reason for verdict in verdicts if verdict.outcome is Outcome.BAD_PROBLEM]
    return ScoredProblem(
        name=problem.name,
        digest=problem.digest,
        level=level,
        category=category,
        excluded=problem.failure.reason if problem.failure else next(iter(invalid), ""),
        samples=tuple(
            scored(verdict, times.get((verdict.problem, verdict.solution)), number, paths[verdict.solution])
            for verdict, number in zip(verdicts, numbers, strict=True)
        ),
    )


def placed(problem: ProblemFolder) -> tuple[str | None, str | None]:
    """Level and category, from the parts of the problem's name and the folder that it lies in.

    `level1/23_softmax` and `level1_23_softmax` are of level 1, `norm/rms_norm` is of category norm.
    """
    *folders, last = problem.name.split("/")
    around = Path(problem.path).absolute().parent.parent.name
    matches = [LEVEL.match(part) for part in (*folders, last, around)]
    level = next((match[1] for match in matches if match), None)
    categories = [part for part in folders if not LEVEL.match(part)]
    return level, "/".join(categories) or None


def sample_numbers(names: Iterable[str]) -> list[int]:
    """Of candidates called `…sample_3` that number; the others get the next free ones, in order."""
    found = [SAMPLE.search(name) for name in names]
    numbers: list[int] = []
    taken: set[int] = {int(match[1]) for match in found if match}
    free = (number for number in range(len(found) + len(taken)) if number not in taken)
    for match in found:
        numbers.append(int(match[1]) if match else next(free))
    return numbers


def scored(verdict: Verdict, timed: TimedRecord | None, sample: int, path: str) -> ScoredCandidate:
    """A candidate as it is scored: the one place that reads the records of judging and timing.

    What was judged on reduced sizes and timed on the declared ones gave `Model`'s result there: it passed.
    """
    outcome, reason, time = verdict.outcome, verdict.reason, None
    if outcome in PASSED and timed is not None:
        if isinstance(timed.result, Profiled):
            outcome, time = Outcome.PASSED, _time(timed, timed.result)
        else:
            reason = f"{timed.result.outcome}: {timed.result.reason}"
            outcome = outcome if timed.result.outcome in NO_TIME else timed.result.outcome
    return ScoredCandidate(
        solution=verdict.solution,
        sample=sample,
        outcome=outcome,
        reason=reason,
        id=verdict.id,
        path=path,
        time=time,
    )


def _time(timed: TimedRecord, measured: Profiled) -> CandidateTime:
    # torch.compile is left out on other sizes: then a failure there says nothing against it either.
    others = [each.result for each in timed.held_out if isinstance(each.result, Profiled)]
    names = {each.baseline for result in others for each in result.comparisons} or {BASELINE}
    pairs = [
        (held, each.baseline)
        for held in timed.held_out
        for each in measured.comparisons
        if each.baseline in names
    ]
    verdicts = [(held, name, _held_out(held.result, name)) for held, name in pairs]
    return CandidateTime(
        seconds=measured.time,
        speedups=tuple(
            MeasuredSpeedup(baseline=each.baseline, speedup=each.speedup, verdict=each.verdict)
            for each in measured.comparisons
        ),
        estimated_bound_share=timed.bound_share,
        held_out=tuple(
            HeldOutVerdict(
                baseline=name,
                sizes=" ".join(f"{size}={value}" for size, value in held.sizes.items()),
                verdict=verdict,
            )
            for held, name, verdict in verdicts
            if verdict is not None
        ),
    )


def _held_out(result: Profiled | Failure, baseline: str) -> HeldOutResult | None:
    """None where nothing is known: the measurement there did not come to an end."""
    found = compared(result, baseline)
    if found is not None:
        return found.verdict
    return "failed" if isinstance(result, Failure) and result.outcome not in NO_TIME else None
