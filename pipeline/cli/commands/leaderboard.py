"""`kernelmill leaderboard`: judged submissions, ranked."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from pipeline.cli.override_arguments import json_option, root_option
from pipeline.records.errors import ConfigError

if TYPE_CHECKING:
    from pipeline.report.leaderboard.standings import Board


def _names(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the stored submissions."""
    from pipeline.store.submission_files import read_submissions

    names = {each.name for each in read_submissions(context.params.get("root") or Path("artifacts"))}
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


@click.command("leaderboard")
@click.option("--html", type=click.Path(path_type=Path), help="Page to write.")
@click.option("--csv", type=click.Path(path_type=Path), help="Table with all scores to write.")
@click.option("--hardware", help="Only submissions that were judged for this target.")
@click.option("--level", help="Only problems of this level.")
@click.option("--baseline", help="Baseline whose fast_1 ranks: eager, compile. [default: eager]")
@click.option(
    "--remove",
    metavar="NAME",
    shell_complete=_names,
    help="Remove a submission, with --hardware that for one target; runs in MLflow are kept.",
)
@json_option
@root_option
def command(  # noqa: PLR0913, PLR0917  (one for each option)
    html: Path | None,
    csv: Path | None,
    hardware: str | None,
    level: str | None,
    baseline: str | None,
    remove: str | None,
    as_json: bool,
    root: Path,
) -> None:
    """Rank submissions of judged candidates.

    `kernelmill judge DIR --measure --submission NAME` adds one. There is a board for each hardware target and
    set of problems. A rank such as 1–3 is a tie: the intervals of fast_1 overlap.

    \b
    Examples:
      kernelmill leaderboard
      kernelmill leaderboard --html leaderboard.html --csv leaderboard.csv
      kernelmill leaderboard --hardware h200 --level 1 --baseline compile
      kernelmill leaderboard --remove first_try
    """
    from pipeline.execution import submissions
    from pipeline.execution.submissions import leaderboard, write_page
    from pipeline.records.record import to_json
    from pipeline.report.leaderboard.leaderboard_table import leaderboard_csv
    from pipeline.report.leaderboard.standings import BoardFilter
    from pipeline.store.atomic import write_atomic

    if remove is not None:
        if html or csv or level or baseline or as_json:
            raise ConfigError("--remove: goes with --hardware and --root only")
        print("\n".join(submissions.remove(root, remove, hardware)))
        return
    wanted = BoardFilter(hardware=hardware, level=level, baseline=baseline)
    found = leaderboard(root, wanted)
    if csv is not None:
        write_atomic(csv, leaderboard_csv(found).encode())
    if html is not None:
        write_page(html, found, csv=csv, root=root)
    if as_json:
        print(to_json(found).decode())
        return
    for board in found:
        _print(board)
    written = {"page": html, "table": csv}
    for what, path in written.items():
        if path is not None:
            print(f"{what:11}{path}")


def _print(board: "Board") -> None:
    from pipeline.execution.run_results import aligned
    from pipeline.performance.quantities import baseline, counted
    from pipeline.report.leaderboard.leaderboard_table import REDUCED, has_reduced, terminal_rows

    against = f", against {baseline(board.baseline)}" if board.baselines else ""
    print(f"{board.title} · {counted(board.problems, 'problem')}{against}")
    for line in aligned(terminal_rows(board)):
        print(line)
    if has_reduced(board):
        print(f"  {REDUCED}: right on reduced sizes, not timed on the declared ones; not in correct")
    missing = [(each.scores.unanswered, each.submission.name) for each in board.standings]
    counts = ", ".join(f"{count} ({name})" for count, name in missing if count)
    if counts:
        print("  scored on all problems of the levels in which a submission has a candidate;")
        print(f"  without a candidate, which counts as failed: {counts}")
    if board.baselines:
        print("  mean: geometric mean of the speed-ups; all: failures and slower candidates count as 1x")
    print()
