"""The leaderboard as tables: boards in, rows for a terminal and CSV files out."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from pipeline.performance.metrics.metric import MetricDeclaration
from pipeline.performance.metrics.submission_metrics import ScoreMetric, candidate_metrics, score_metrics
from pipeline.performance.quantities import digits, share
from pipeline.performance.submission_scores import Scores
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.results.scored import Submission
from pipeline.report.leaderboard.standings import Board, Standing

HEADING = ("rank", "submission", "correct", "fast_1", "fast_1 sure", "fast_2", "mean, all", "mean, correct")
REDUCED = "reduced"
"""Column of the share that is correct on reduced sizes only; shown if a submission has any."""
_PLACE = ("hardware", "device", "problem_set", "baseline", "submission", "judged", "verify", "measured")
_BESIDE = HEADING.index("correct") + 1
_GROUP = ("level", "category")
_CANDIDATE = ("problem", "level", "category", "solution", "sample", "outcome", "reason", "id")


def terminal_rows(board: Board) -> list[tuple[str, ...]]:
    """One row per submission, below a heading; times are against the board's baseline."""
    rows = [HEADING, *(_terminal_row(each, board.baseline) for each in board.standings)]
    if not has_reduced(board):
        return rows
    column = (REDUCED, *(f"+ {share(each.scores.reduced.value)}" for each in board.standings))
    return [(*row[:_BESIDE], cell, *row[_BESIDE:]) for row, cell in zip(rows, column, strict=True)]


def has_reduced(board: Board) -> bool:
    """Whether a candidate is correct on reduced sizes only."""
    return any(each.scores.reduced.value > 0 for each in board.standings)


def _terminal_row(standing: Standing, baseline: str) -> tuple[str, ...]:
    name = standing.submission.name
    against = standing.scores.against(baseline)
    correct = _share(standing.scores.correct)
    if against is None:
        return (standing.rank, name, correct, *["-"] * 5)
    mean = against.mean_correct
    return (
        standing.rank,
        name,
        correct,
        _share(against.at(1.0).share),
        share(against.at(1.0).sure.value),
        share(against.at(2.0).share.value),
        f"{digits(against.mean_all.value)}x",
        "-" if mean is None else f"{digits(mean.value)}x",
    )


def _share(interval: ConfidenceInterval) -> str:
    return f"{share(interval.value)} ({100 * interval.low:.0f}-{100 * interval.high:.0f})"


def leaderboard_csv(boards: Sequence[Board]) -> str:
    """One row per submission and group of problems: all, each level, each category."""
    baselines = dict.fromkeys(name for board in boards for name in board.baselines)
    ks = sorted({k for board in boards for k in board.ks})
    metrics = score_metrics(baselines, ks)
    rows = (row for board in boards for each in board.standings for row in _rows(board, each, metrics))
    return _csv([*_PLACE, "best_rank", "worst_rank", *_GROUP, *_names(metrics)], rows)


def candidates_csv(submission: Submission) -> str:
    """One row per candidate of a submission, with its time and speed-ups."""
    metrics = candidate_metrics(submission.baselines)
    rows = (
        [
            *(problem.name, problem.level, problem.category, sample.solution, sample.sample),
            *(str(sample.outcome), sample.reason, sample.id),
            *(metric.value(sample) for metric in metrics),
        ]
        for problem in submission.problems
        for sample in problem.samples
    )
    return _csv([*_CANDIDATE, *_names(metrics)], rows)


def _rows(board: Board, standing: Standing, metrics: Sequence[ScoreMetric]) -> Iterator[list[object]]:
    submission = standing.submission
    place = [
        *(board.hardware, board.device, board.problem_set, board.baseline, submission.name),
        *(submission.provenance.created, submission.verify, str(submission.measured).lower()),
    ]
    ranks = [standing.best_rank, standing.worst_rank]
    yield [*place, *ranks, None, None, *_values(standing.scores, metrics)]
    for level, scores in standing.levels.items():
        yield [*place, None, None, level, None, *_values(scores, metrics)]
    for category, scores in standing.categories.items():
        yield [*place, None, None, None, category, *_values(scores, metrics)]


def _values(scores: Scores, metrics: Sequence[ScoreMetric]) -> list[object]:
    return [metric.value(scores) for metric in metrics]


def _names(metrics: Iterable[MetricDeclaration]) -> list[str]:
    return [metric.name for metric in metrics]


def _csv(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A header and rows."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heading)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return stream.getvalue()


def _cell(value: object) -> object:
    """Absent values are empty, numbers have six digits, texts nothing that a terminal would act on."""
    if isinstance(value, str):
        return "".join(letter if letter.isprintable() else " " for letter in value)
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else value
