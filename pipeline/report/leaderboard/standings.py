"""Ranks submissions: stored submissions in, one board per hardware and set of problems out.

Submissions are compared only if they were judged on the same problems, for the same target, on the same
device.
"""

from collections.abc import Mapping, Sequence

import msgspec

from pipeline.performance.submission_scores import Scores, ks_of, scores, scores_by
from pipeline.records.errors import ConfigError, hint
from pipeline.records.record import Record
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.results.scored import Submission

BASELINE = "eager"
"""Whose fast_1 ranks, unless another baseline is asked for."""
RANKED_BY = 1.0


class Standing(Record, frozen=True, kw_only=True):
    """One submission on a board."""

    submission: Submission
    """With the problems that the board is about."""
    scores: Scores
    levels: dict[str, Scores]
    categories: dict[str, Scores]
    best_rank: int | None
    """Ranks that the intervals leave open, 1 is the first; None if it was not measured."""
    worst_rank: int | None

    @property
    def rank(self) -> str:
        """`2`, or `2–4` where it is tied."""
        if self.best_rank is None:
            return "–"
        return (
            f"{self.best_rank}"
            if self.best_rank == self.worst_rank
            else f"{self.best_rank}–{self.worst_rank}"
        )

    def ranked_by(self, baseline: str) -> ConfidenceInterval | None:
        """fast_1 against a baseline; None if it was not measured."""
        found = self.scores.against(baseline)
        return None if found is None else found.at(RANKED_BY).share


class Board(Record, frozen=True, kw_only=True):
    """Submissions that can be compared, the best first."""

    hardware: str
    device: str
    problem_set: str
    """Digest of the problems."""
    problems: int
    baselines: tuple[str, ...]
    baseline: str
    """The one whose fast_1 ranks."""
    ks: tuple[int, ...]
    """Numbers of samples for pass@k."""
    standings: tuple[Standing, ...]

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.hardware} · {self.device}"

    def has(self, submission: Submission) -> bool:
        """Whether a submission is on it."""
        return any(each.submission.key == submission.key for each in self.standings)

    @property
    def levels(self) -> list[str]:
        """Levels that at least one submission is scored on."""
        return sorted({name for each in self.standings for name in each.levels})

    @property
    def categories(self) -> list[str]:
        """Categories, likewise."""
        return sorted({name for each in self.standings for name in each.categories})


class BoardFilter(Record, frozen=True, kw_only=True):
    """What of the submissions is wanted."""

    hardware: str | None = None
    level: str | None = None
    baseline: str | None = None


def boards(submissions: Sequence[Submission], wanted: BoardFilter | None = None) -> list[Board]:
    """The boards with the most submissions first.

    Raises
    ------
    ConfigError
        No submission has this hardware, level or baseline.
    """
    wanted = BoardFilter() if wanted is None else wanted
    _check(submissions, wanted)
    groups: dict[tuple[str, str, str], list[Submission]] = {}
    for each in submissions:
        of_level = _of_level(each, wanted.level)
        if wanted.hardware in (None, each.hardware) and of_level.problems:
            key = (each.hardware, each.device, of_level.problem_set)
            groups.setdefault(key, []).append(of_level)
    found = (_board(group, key, wanted.baseline) for key, group in groups.items())
    return sorted(
        (board for board in found if board is not None),
        key=lambda board: (-len(board.standings), board.title),
    )


def _check(submissions: Sequence[Submission], wanted: BoardFilter) -> None:
    known = {
        "hardware": {each.hardware for each in submissions},
        "level": {problem.level for each in submissions for problem in each.problems if problem.level},
        "baseline": {name for each in submissions for name in each.baselines},
    }
    for option, values in known.items():
        chosen = getattr(wanted, option)
        if chosen is not None and chosen not in values:
            raise ConfigError(f"--{option} {chosen}: no submission has it{hint(chosen, sorted(values))}")


def _of_level(submission: Submission, level: str | None) -> Submission:
    if level is None:
        return submission
    problems = tuple(problem for problem in submission.problems if problem.level == level)
    return msgspec.structs.replace(submission, problems=problems)


def _board(group: Sequence[Submission], key: tuple[str, str, str], baseline: str | None) -> Board | None:
    """None if all of its problems are invalid."""
    hardware, device, problem_set = key
    baselines = tuple(dict.fromkeys(name for each in group for name in each.baselines))
    if not baselines and any(each.measured for each in group):
        baselines = (BASELINE,)  # nothing passed: nothing is fast, against whatever baseline
    ranking = baseline or (BASELINE if BASELINE in baselines or not baselines else baselines[0])
    invalid = {
        problem.name: problem.excluded for each in group for problem in each.problems if problem.excluded
    }
    standings = [_standing(_without(each, invalid), baselines) for each in group]
    scored = [each for each in standings if each is not None]
    if not scored:
        return None
    return Board(
        hardware=hardware,
        device=device,
        problem_set=problem_set,
        problems=scored[0].scores.problems,
        baselines=baselines,
        baseline=ranking,
        ks=tuple(ks_of([problem for each in group for problem in each.problems])),
        standings=tuple(_ranked(scored, ranking)),
    )


def _without(submission: Submission, invalid: Mapping[str, str]) -> Submission:
    """A problem that is invalid for one is for all: not everybody's candidates show it."""
    problems = tuple(
        msgspec.structs.replace(each, excluded=invalid.get(each.name, "")) for each in submission.problems
    )
    return msgspec.structs.replace(submission, problems=problems)


def _standing(submission: Submission, baselines: Sequence[str]) -> Standing | None:
    names = baselines if submission.measured else ()
    found = scores(submission.problems, names)
    if found is None:
        return None
    return Standing(
        submission=submission,
        scores=found,
        levels=scores_by(submission.problems, "level", names),
        categories=scores_by(submission.problems, "category", names),
        best_rank=None,
        worst_rank=None,
    )


def _ranked(standings: Sequence[Standing], baseline: str) -> list[Standing]:
    """The best first, those that were not measured last, each with the ranks that its interval allows."""
    found = [each.ranked_by(baseline) for each in standings]
    measured = [share for share in found if share is not None]
    return [
        _placed(each, baseline, measured)
        for each in sorted(standings, key=lambda each: _order(each, baseline))
    ]


def _order(standing: Standing, baseline: str) -> tuple[float, float, float, str]:
    against = standing.scores.against(baseline)
    name, correct = standing.submission.name, standing.scores.correct.value
    if against is None:
        return 1.0, 0.0, -correct, name
    return -against.at(RANKED_BY).share.value, -against.mean_all.value, -correct, name


def _placed(standing: Standing, baseline: str, measured: Sequence[ConfidenceInterval]) -> Standing:
    share = standing.ranked_by(baseline)
    if share is None:
        return standing
    return msgspec.structs.replace(
        standing,
        best_rank=1 + sum(other.low > share.high for other in measured),
        worst_rank=len(measured) - sum(other.high < share.low for other in measured),
    )
