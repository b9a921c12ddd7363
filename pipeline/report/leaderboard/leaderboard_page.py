"""The leaderboard as a page: boards in, one self-contained HTML page out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.performance.metrics.submission_metrics import score_metrics
from pipeline.performance.quantities import baseline, counted
from pipeline.performance.submission_scores import Scores, fast_curve
from pipeline.report.leaderboard.standings import Board, Standing
from pipeline.report.page.rendering import render_template

TEMPLATE = "leaderboard.html.j2"
INLINED = ("report.css", "leaderboard.css", "plot.js", "leaderboard.js")
CURVE = tuple(place / 20 for place in range(81))
"""Values of p at which fast_p is drawn: 0 to 4."""
SHOWN = (1.0, 1.5, 2.0, 4.0)
"""Thresholds with a column of their own; the CSV file has all."""


def leaderboard_page(boards: Sequence[Board], tables: Mapping[str, str], csv: str | None) -> str:
    """The whole page.

    `tables`: key of a submission -> link to the table of its candidates, of those that have one; `csv`: link
    to the table of all scores.
    """
    baselines = list(dict.fromkeys(name for board in boards for name in board.baselines))
    context = {
        "boards": boards,
        "title": _title(boards),
        "thresholds": SHOWN,
        "others": lambda board: [name for name in board.baselines if name != board.baseline],
        "names": {name: baseline(name) for name in baselines},
        "grouped": _grouped,
        "tables": tables,
        "csv": csv,
        "metrics": [
            metric
            for metric in score_metrics(["<baseline>"], [2])
            if not metric.name.endswith((".low", ".high"))
        ],
    }
    return render_template(TEMPLATE, context, INLINED, [_data(board) for board in boards])


def _title(boards: Sequence[Board]) -> str:
    count = len({each.submission.key for board in boards for each in board.standings})
    targets = list(dict.fromkeys(board.hardware for board in boards))
    return f"{counted(count, 'submission')} · {', '.join(targets)}"


def _grouped(board: Board) -> list[tuple[str, list[tuple[str, list[Scores | None]]]]]:
    """Tables of levels and of categories: group -> its names, each with the scores of all submissions."""
    groups = {"level": board.levels, "category": board.categories}
    return [
        (group, [(name, _column(board.standings, group, name)) for name in names])
        for group, names in groups.items()
        if names
    ]


def _column(standings: Iterable[Standing], group: str, name: str) -> list[Scores | None]:
    return [(each.levels if group == "level" else each.categories).get(name) for each in standings]


def _data(board: Board) -> dict[str, Any]:
    """What the board's chart draws."""
    measured = [each for each in board.standings if each.submission.measured]
    return {
        "baselines": [{"name": name, "label": baseline(name)} for name in board.baselines],
        "chosen": board.baseline,
        "p": CURVE,
        "submissions": [
            {"name": each.submission.name, "fast": {name: _curve(each, name) for name in board.baselines}}
            for each in measured
        ],
    }


def _curve(standing: Standing, name: str) -> list[float]:
    problems = [problem for problem in standing.submission.problems if not problem.excluded]
    return [round(value, 5) for value in fast_curve(problems, name, CURVE)]
