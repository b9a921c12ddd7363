"""`kernelmill runs`: tracked runs, listed, compared or opened."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.cli.override_arguments import json_option, root_option
from pipeline.performance.quantities import digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.track.run_listing import TrackedRun

METRIC = "time/median_us"
NO_VERDICT = (
    "intervals that overlap show no difference; no verdict (faster, slower): the runs were not measured side "
    "by side"
)
RATIO = "second/first"
CELL = 60
"""Characters of a value in a comparison."""


@click.command("runs")
@click.argument("filters", nargs=-1, metavar="[KEY=VALUE|NAME]...")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="Runs to list.")
@click.option("--metric", default=METRIC, show_default=True, help="Metric to show.")
@click.option("--compare", nargs=2, metavar="ID ID", help="Show what differs between two runs.")
@click.option(
    "--open", "opened", metavar="ID", help="Open a run's page in the browser, or print its address."
)
@json_option
@root_option
def command(  # noqa: PLR0913, PLR0917  (one for each option)
    filters: tuple[str, ...],
    limit: int,
    metric: str,
    compare: tuple[str, str] | None,
    opened: str | None,
    as_json: bool,
    root: Path,
) -> None:
    """List tracked runs, the latest first.

    Filters are tags or parameters of the runs (kernel=softmax) or parts of their names. An id may be
    abbreviated. The page of a run needs the UI: kernelmill ui.

    \b
    Examples:
      kernelmill runs kernel=softmax hardware=cpu --limit 5
      kernelmill runs --compare 3f0c91d2 77ab03c1
    """
    from pipeline.records.record import to_json
    from pipeline.track.run_listing import differences, find_runs, metric_of, one_run

    if opened is not None:
        run = one_run(root, opened)
        print(to_json(run).decode() if as_json else run.address)
        if sys.stdout.isatty() and not as_json:
            click.launch(run.address)
    elif compare is not None:
        first, second = (one_run(root, each) for each in compare)
        found = differences(first, second)
        if as_json:
            print(to_json(found).decode())
        else:
            rows = [
                (each.name, _cut(each.first), _cut(each.second), _ratio(each.ratio), each.intervals or "")
                for each in found
            ]
            judged = any(each.intervals for each in found)
            print(f"first   {first.id[:8]}  {first.name}\nsecond  {second.id[:8]}  {second.name}\n")
            _print([("", "first", "second", RATIO, "intervals" if judged else ""), *rows])
            if judged:
                print(NO_VERDICT, file=sys.stderr)
    else:
        runs = find_runs(root, filters, limit=limit)
        if as_json:
            print(to_json(runs).decode())
        elif runs:
            if metric != METRIC:
                metric_of(runs, metric)
            _print([("id", "started", metric, "name"), *(_row(run, metric) for run in runs)])
            if len(runs) == limit:
                print(f"the latest {limit} runs (--limit shows more)", file=sys.stderr)
        else:
            print("no run matches" if filters else "no runs", file=sys.stderr)


def _row(run: "TrackedRun", metric: str) -> tuple[str, ...]:
    value = run.metrics.get(metric)
    return run.id[:8], run.started[:19].replace("T", " "), "-" if value is None else digits(value), run.name


def _cut(text: str | None) -> str:
    """A value in its column; --json has it whole."""
    if text is None:
        return "-"
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3g}"


def _print(rows: "Sequence[Sequence[str]]") -> None:
    from pipeline.execution.run_results import aligned

    for line in aligned(rows, indent=0):
        print(line)
