"""The comparison of strategies as a page. In: what each found on each space. Out: Markdown, a picture."""

# ruff: noqa: E501  (the page is text, wrapped as pages are)

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipeline.store.atomic import write_atomic
from tests.benchmarks.curves_svg import Line, Panel, colours_of, picture
from tests.benchmarks.figures import ROOT
from tests.benchmarks.machine import where
from tests.benchmarks.strategy_scores import (
    Curves,
    Score,
    by_cost,
    by_evaluations,
    random_by_cost,
    random_by_evaluations,
    score,
)

if TYPE_CHECKING:
    from tests.benchmarks.strategies import Runs, Subject

PAGE = ROOT / "docs" / "results" / "strategies.md"
PICTURE = ROOT / "docs" / "images" / "strategies.svg"
MOMENTS = 100
"""At which the budget in seconds is looked at."""
BEST_SHOWN = 3
"""Of ours and of theirs, in the picture."""
THEIRS = "Kernel Tuner: "


class Standing(NamedTuple):
    """One strategy on one space."""

    curves: Curves
    evaluations: Score
    seconds: Score
    thought: float
    """Mean processor seconds of a whole search."""
    fewest: int
    """Evaluations of the shortest search."""


class Row(NamedTuple):
    """One strategy."""

    name: str
    theirs: bool
    standings: tuple[Standing | str, ...]
    """By space; a text where it failed."""

    @property
    def mean(self) -> float:
        """Mean score over the spaces; the least there is where one of them failed."""
        found = [each.evaluations.value for each in self.standings if isinstance(each, Standing)]
        return float(np.mean(found)) if len(found) == len(self.standings) else -np.inf


def publish(subjects: "Sequence[Subject]", command: str, options: argparse.Namespace) -> None:
    """Write the page and its picture."""
    rows = _rows(subjects, options.evaluations)
    tools = [f"Kernel Tuner {_version(options.packages)}"] if options.packages else []
    parts = [
        _introduction(options, command, where(("optuna", "numpy", "scipy"), tools=tools)),
        _verdict(rows, subjects),
        f"![best so far against the number of evaluations](../images/{PICTURE.name})",
        "## Score by evaluations",
        _scores(rows, subjects),
        "## Score by seconds, and what a search found",
        _costs(rows, subjects),
        _method(subjects, options),
    ]
    write_atomic(PICTURE, _picture(rows, subjects, options.evaluations).encode())
    text = "\n\n".join(parts) + "\n"
    write_atomic(PAGE, text.encode())
    print(text)


def _rows(subjects: "Sequence[Subject]", evaluations: int) -> list[Row]:
    names = [(name, False) for name in subjects[0].ours] + [(name, True) for name in subjects[0].theirs]
    baselines = [_baselines(subject, evaluations) for subject in subjects]
    rows = [
        Row(
            name,
            theirs,
            tuple(
                _standing((subject.theirs if theirs else subject.ours)[name], subject, evaluations, base)
                for subject, base in zip(subjects, baselines, strict=True)
            ),
        )
        for name, theirs in names
    ]
    return sorted(rows, key=lambda row: -row.mean)


class _Baselines(NamedTuple):
    by_evaluations: np.ndarray
    by_cost: np.ndarray
    axis: np.ndarray


def _baselines(subject: "Subject", evaluations: int) -> _Baselines:
    table = subject.table
    axis = np.linspace(0, evaluations * float(table.cost.mean()), MOMENTS + 1)[1:]
    return _Baselines(
        random_by_evaluations(table.seconds, evaluations),
        random_by_cost(table.seconds, table.cost, axis),
        axis,
    )


def _standing(runs: "Runs", subject: "Subject", evaluations: int, base: _Baselines) -> Standing | str:
    if runs.failure is not None or not runs.runs:
        return runs.failure or "no searches"
    found = [run.values for run in runs.runs]
    curves = by_evaluations(found, evaluations)
    cost = by_cost(found, [run.cost for run in runs.runs], base.axis)
    optimum = subject.table.optimum
    return Standing(
        curves=curves,
        evaluations=score(curves, base.by_evaluations, optimum),
        seconds=score(cost, base.by_cost, optimum),
        thought=float(np.mean([run.thought for run in runs.runs])),
        fewest=min(len(run.found) for run in runs.runs),
    )


def _introduction(options: argparse.Namespace, command: str, measured: str) -> str:
    return f"""# Search strategies on recorded measurements

What a search would have found on an A100 and an MI250X, without either: every configuration of these spaces was
measured by the authors of the AutoTuningAssociation/benchmark_hub, and is looked up (docs/replay.md).

```sh
{command}
```

{measured} The times are recorded ones, of the devices named; only *thought* was measured here.
{options.repeats} searches of {options.evaluations} evaluations for each strategy and space."""


def _verdict(rows: Sequence[Row], subjects: "Sequence[Subject]") -> str:
    """Ours against theirs, as the figures have it."""
    ours = next(row for row in rows if not row.theirs)
    theirs = next((row for row in rows if row.theirs), None)
    if theirs is None:
        return f"Best of ours: `{ours.name}`, mean score {ours.mean:.2f}. Kernel Tuner was not run."
    better = "above" if ours.mean > theirs.mean else "below"
    lines = [
        f"Best of ours: `{ours.name}`, mean score {ours.mean:.2f}, {better} the best of Kernel Tuner's, "
        f"`{theirs.name}` with {theirs.mean:.2f}. Space by space:",
        "",
    ]
    for place, subject in enumerate(subjects):
        one, other = ours.standings[place], theirs.standings[place]
        best = max(
            (row for row in rows if row.theirs and isinstance(row.standings[place], Standing)),
            key=lambda row: _value(row, place),
        )
        assert isinstance(one, Standing) and isinstance(other, Standing)
        lines.append(
            f"- {subject.name}: {_interval(one.evaluations)} against {_interval(other.evaluations)}; "
            f"Kernel Tuner's best on this space is `{best.name}`, {_value(best, place):.2f}"
        )
    return "\n".join(lines)


def _value(row: Row, place: int) -> float:
    standing = row.standings[place]
    return standing.evaluations.value if isinstance(standing, Standing) else -np.inf


def _scores(rows: Sequence[Row], subjects: "Sequence[Subject]") -> str:
    heading = ["strategy", *(subject.name for subject in subjects), "mean"]
    lines = [heading, ["---", *["---:"] * (len(subjects) + 1)]]
    for row in rows:
        cells = [each if isinstance(each, str) else _interval(each.evaluations) for each in row.standings]
        lines.append([_name(row), *cells, f"{row.mean:.2f}" if np.isfinite(row.mean) else "–"])
    return _table(lines)


def _costs(rows: Sequence[Row], subjects: "Sequence[Subject]") -> str:
    heading = ["strategy"]
    for subject in subjects:
        heading += [f"{subject.name}: score by seconds", "found at the end, over the optimum", "thought"]
    lines = [heading, ["---", *["---:"] * (3 * len(subjects))]]
    for row in rows:
        cells: list[str] = []
        for each, subject in zip(row.standings, subjects, strict=True):
            cells += ["–"] * 3 if isinstance(each, str) else _cost_cells(each, subject)
        lines.append([_name(row), *cells])
    return _table(lines)


def _cost_cells(standing: Standing, subject: "Subject") -> list[str]:
    quantiles = [standing.curves.quantile(share)[-1] / subject.table.optimum for share in (0.25, 0.5, 0.75)]
    early = standing.fewest < len(standing.curves.axis)
    ended = f" (ended after {standing.fewest} or more)" if early else ""
    return [
        _interval(standing.seconds),
        f"{quantiles[1]:.3f} ({quantiles[0]:.3f} to {quantiles[2]:.3f}){ended}",
        f"{standing.thought:.2f} s",
    ]


def _method(subjects: "Sequence[Subject]", options: argparse.Namespace) -> str:
    sizes = "; ".join(
        f"{subject.name}: {len(subject.table.seconds):,} configurations, "
        f"{int(np.isinf(subject.table.seconds).sum())} failures, optimum {1e3 * subject.table.optimum:.4f} ms, "
        f"{options.evaluations} evaluations cost {options.evaluations * subject.table.cost.mean():,.0f} s on average"
        for subject in subjects
    )
    return f"""## How

{sizes}.

- **Score**: mean over the budget of the share of the way from random search to the optimum that the median best so
  far has gone; 0 is random search, 1 the optimum at once, below 0 worse than random. In brackets a 95 % bootstrap
  interval over the repeats. After Willemsen and others, *A Methodology for Comparing Auto-Tuning
  Optimization Algorithms* (2024, doi:10.1016/j.future.2024.05.021), with the median of the repeats in place of their
  mean.
- **Random search**, the baseline: by evaluations its exact median (draws without replacement), by seconds the median
  of 2,000 simulated ones. A failure is an evaluation and finds nothing.
- **By seconds**: recorded compile, measuring, verifying and framework time of each evaluation; the budget is what the
  evaluations cost on average. What a strategy itself thinks is not counted.
- **Both see the same table**: the median of the recorded samples, and the failures. Kernel Tuner runs in its own
  simulation mode (`tune_kernel(simulation_mode=True)`, `max_fevals`, a seed per repeat) on a cache file that holds
  these medians, with the T1 file's conditions as restrictions and each strategy's default settings. An evaluation of
  its is a configuration that its budget counts: one that is asked for again, or breaks a rule, costs it nothing.
- **Ours** propose 8 at a time and learn between rounds only, as the pipeline does; Kernel Tuner's learn from each
  evaluation. Some of ours begin with the T1 file's default.
- **Choice of settings**: those of `evolution` were tuned on convolution A100 alone; the other two spaces show them.
  `surrogate` was developed on it, too. Kernel Tuner's `hybrid_vndx` and `adaptive_tabu_greywolf` are, by their sources,
  algorithms that were generated for a paper on auto-tuning; on which spaces is not said there, these may be among
  them."""


def _picture(rows: Sequence[Row], subjects: "Sequence[Subject]", evaluations: int) -> str:
    ours = [row for row in rows if not row.theirs and np.isfinite(row.mean)][:BEST_SHOWN]
    theirs = [row for row in rows if row.theirs and np.isfinite(row.mean)][:BEST_SHOWN]
    panels = []
    for place, subject in enumerate(subjects):
        optimum = subject.table.optimum
        baseline = random_by_evaluations(subject.table.seconds, evaluations) / optimum
        lines = [Line("random search", baseline)]
        for row in (*ours, *theirs):
            standing = row.standings[place]
            assert isinstance(standing, Standing)
            band = [standing.curves.quantile(share) / optimum for share in (0.25, 0.5, 0.75)]
            shaded = row is ours[0]
            lines.append(
                Line(
                    _plain(row),
                    band[1],
                    low=band[0] if shaded else None,
                    high=band[2] if shaded else None,
                    dashed=row.theirs,
                )
            )
        panels.append(Panel(subject.name, lines, top=1 + 1.5 * float(baseline[9] - 1)))
    below = "evaluations"
    return picture(panels, colours_of([line.name for line in panels[0].lines]), below)


def _name(row: Row) -> str:
    return f"{THEIRS if row.theirs else ''}`{row.name}`"


def _plain(row: Row) -> str:
    return f"{THEIRS if row.theirs else ''}{row.name}"


def _interval(found: Score) -> str:
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def _table(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _version(packages: Path) -> str:
    (folder,) = packages.glob("kernel_tuner-*.dist-info")
    return folder.name.removeprefix("kernel_tuner-").removesuffix(".dist-info")
