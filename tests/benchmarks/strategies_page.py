"""The comparison of strategies as a page. In: what each found on each space. Out: Markdown, two pictures."""

# ruff: noqa: E501  (the page is text, wrapped as pages are)

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline.store.atomic import write_atomic
from tests.benchmarks.curves_svg import Line, Panel, colours_of, picture
from tests.benchmarks.figures import ROOT
from tests.benchmarks.machine import where
from tests.benchmarks.strategy_scores import Score
from tests.benchmarks.strategy_standings import Baseline, Row, Standing, baseline, rows

if TYPE_CHECKING:
    from tests.benchmarks.strategies import Subject

PAGE = ROOT / "docs" / "results" / "strategies.md"
PICTURE = ROOT / "docs" / "images" / "strategies.svg"
BY_SECONDS = ROOT / "docs" / "images" / "strategies_by_seconds.svg"
BEST_SHOWN = 3
"""Of ours and of theirs, in the pictures."""
THEIRS = "Kernel Tuner: "
QUARTILES = (0.25, 0.5, 0.75)


def publish(subjects: "Sequence[Subject]", command: str, options: argparse.Namespace) -> None:
    """Write the page and its pictures."""
    baselines = [baseline(subject, options.evaluations) for subject in subjects]
    found = rows(subjects, baselines, options.repeats)
    tools = [f"Kernel Tuner {version(options.packages)}"] if options.packages else []
    parts = [
        _introduction(options, command, where(("optuna", "numpy", "scipy"), tools=tools)),
        _verdict(found, subjects),
        f"![best so far against the number of evaluations](../images/{PICTURE.name})",
        f"![best so far against the recorded seconds](../images/{BY_SECONDS.name})",
        "Medians of the searches; the shaded area contains half of the searches of our best strategy.",
        "## Score by evaluations",
        _scores(found, subjects),
        "## Score by seconds, and what a search found",
        _costs(found, subjects),
        _method(subjects, options),
    ]
    write_atomic(PICTURE, _by_evaluations(found, subjects, baselines).encode())
    write_atomic(BY_SECONDS, _by_seconds(found, subjects, baselines).encode())
    text = "\n\n".join(parts) + "\n"
    write_atomic(PAGE, text.encode())
    print(text)


def version(packages: Path) -> str:
    """Kernel Tuner's, as installed there."""
    (folder,) = packages.glob("kernel_tuner-*.dist-info")
    return folder.name.removeprefix("kernel_tuner-").removesuffix(".dist-info")


def _introduction(options: argparse.Namespace, command: str, measured: str) -> str:
    return f"""# Search strategies on recorded measurements

What each strategy would have found on an A100 and an MI250X. Every configuration of these spaces was measured by the
authors of AutoTuningAssociation/benchmark_hub; the searches [replay](../guide/replay.md) those measurements.

```sh
{command}
```

{measured} The times are the recorded ones of the named devices; only *computing time* was measured here.
{options.repeats} searches of {options.evaluations} evaluations per strategy and space; limit: {options.limit:g} CPU seconds per strategy and space."""


def _verdict(found: Sequence[Row], subjects: "Sequence[Subject]") -> str:
    """Ours against theirs, as the figures have it."""
    ours = next(row for row in found if not row.theirs)
    theirs = next((row for row in found if row.theirs), None)
    if theirs is None:
        return f"Our best strategy: `{ours.name}`, mean score {ours.mean:.2f}. Kernel Tuner was not run."
    lines = [
        f"Our best strategy: `{ours.name}`, mean score {ours.mean:.2f}, {'above' if ours.mean > theirs.mean else 'not above'} "
        f"Kernel Tuner's best, `{theirs.name}` with {theirs.mean:.2f}; by seconds {ours.mean_by_seconds:.2f} compared with "
        f"{max(row.mean_by_seconds for row in found if row.theirs):.2f}. Compared with Kernel Tuner's best on each space:",
        "",
    ]
    for place, subject in enumerate(subjects):
        best = max((row for row in found if row.theirs), key=lambda row: _value(row, place))
        one, other = ours.standings[place], best.standings[place]
        assert isinstance(one, Standing) and isinstance(other, Standing)
        lines.append(
            f"- {subject.name}: {_interval(one.evaluations)}, {_better(one.evaluations, other.evaluations)} "
            f"`{best.name}` with {_interval(other.evaluations)}"
        )
    return "\n".join(lines)


def _better(one: Score, other: Score) -> str:
    if one.low > other.high:
        return "above"
    return "below" if one.high < other.low else "indistinguishable from"


def _value(row: Row, place: int) -> float:
    standing = row.standings[place]
    return standing.evaluations.value if isinstance(standing, Standing) else -np.inf


def _scores(found: Sequence[Row], subjects: "Sequence[Subject]") -> str:
    heading = ["strategy", *(subject.name for subject in subjects), "mean", "mean by seconds"]
    lines = [heading, ["---", *["---:"] * (len(subjects) + 2)]]
    for row in found:
        cells = [each if isinstance(each, str) else _interval(each.evaluations) for each in row.standings]
        lines.append([_name(row), *cells, _mean(row.mean), _mean(row.mean_by_seconds)])
    return _table(lines)


def _mean(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "–"


def _costs(found: Sequence[Row], subjects: "Sequence[Subject]") -> str:
    heading = ["strategy"]
    for subject in subjects:
        heading += [
            f"{subject.name}: score by seconds",
            "found at the end, over the optimum",
            "computing time",
        ]
    lines = [heading, ["---", *["---:"] * (3 * len(subjects))]]
    for row in found:
        cells: list[str] = []
        for each, subject in zip(row.standings, subjects, strict=True):
            cells += ["–"] * 3 if isinstance(each, str) else _cost_cells(each, subject)
        lines.append([_name(row), *cells])
    return _table(lines)


def _cost_cells(standing: Standing, subject: "Subject") -> list[str]:
    quarter, half, three = (
        standing.curves.quantile(share)[-1] / subject.table.optimum for share in QUARTILES
    )
    early = standing.fewest < len(standing.curves.axis)
    ended = f" (ended after {standing.fewest} or more)" if early else ""
    return [
        _interval(standing.seconds),
        f"{half:.3f} ({quarter:.3f} to {three:.3f}){ended}",
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

- **Score**: how far the median best-so-far curve is on the way from random search (0) to the optimum (1), averaged over
  the budget; below 0 is worse than random. In brackets a 95 % bootstrap interval over the repeats. After Willemsen et al., *A Methodology for Comparing Auto-Tuning
  Optimization Algorithms* (2024, doi:10.1016/j.future.2024.05.021), with the median of the repeats instead of the
  mean.
- **Random search**, the baseline: by evaluations its exact median (draws without replacement), by seconds the median
  of 2,000 simulated searches. A failure is an evaluation without a result.
- **By seconds**: recorded compile, measuring, verifying and framework time of each evaluation; the budget is the
  average cost of the evaluations. The strategy's own computing time is not counted.
- **Both see the same table**: the median of the recorded samples, and the failures. Kernel Tuner runs in its own
  simulation mode (`tune_kernel(simulation_mode=True)`, `max_fevals`, a seed per repeat) on a cache file that holds
  these medians, with the T1 file's conditions as restrictions and each strategy's default settings. A
  configuration that is requested again, or that breaks a rule, does not count as an evaluation.
- **Our strategies** propose 8 variants at a time and learn between rounds only, as in the pipeline; Kernel Tuner's learn
  from each evaluation. Some of ours start with the T1 file's default.
- **The limit** is CPU time for all searches of one strategy on one space. A strategy that exceeded it has no score there,
  and no mean.
{_CHOICE}"""


_CHOICE = """- **Choice of settings**: those of `evolution` were tuned on convolution A100 only.
  `surrogate` was developed on convolution A4000, A6000, W6600 and W7800, dedispersion A4000, W6600 and W7800 of the same
  hub, and on its older gemm and convolution of an RTX 3090: the same kernels on other devices; an earlier version of it on
  convolution A100. Kernel Tuner's `hybrid_vndx` and `adaptive_tabu_greywolf` are, according to their sources,
  algorithms that were generated for a paper on auto-tuning. It does not say on which spaces; these may be among
  them."""


def _by_evaluations(
    found: Sequence[Row], subjects: "Sequence[Subject]", baselines: Sequence[Baseline]
) -> str:
    panels = []
    for place, (subject, base) in enumerate(zip(subjects, baselines, strict=True)):
        optimum = subject.table.optimum
        lines = [Line("random search", base.by_evaluations / optimum)]
        for row, standing in _shown(found, place):
            bands = [standing.curves.quantile(share) / optimum for share in QUARTILES]
            lines.append(_line(row, bands, found))
        panels.append(Panel(subject.name, lines, top=_top(base, optimum)))
    return picture(panels, colours_of([line.name for line in panels[0].lines]), "evaluations")


def _by_seconds(found: Sequence[Row], subjects: "Sequence[Subject]", baselines: Sequence[Baseline]) -> str:
    panels = []
    for place, (subject, base) in enumerate(zip(subjects, baselines, strict=True)):
        optimum = subject.table.optimum
        lines = [Line("random search", base.by_cost / optimum)]
        for row, standing in _shown(found, place):
            bands = [standing.by_cost.quantile(share) / optimum for share in QUARTILES]
            lines.append(_line(row, bands, found))
        panels.append(Panel(subject.name, lines, top=_top(base, optimum), end=float(base.moments[-1])))
    below = "recorded seconds of compiling and measuring"
    return picture(panels, colours_of([line.name for line in panels[0].lines]), below)


def _shown(found: Sequence[Row], place: int) -> list[tuple[Row, Standing]]:
    """The best of ours and of theirs."""
    whole = [row for row in found if np.isfinite(row.mean)]
    chosen = [
        row
        for theirs in (False, True)
        for row in [each for each in whole if each.theirs is theirs][:BEST_SHOWN]
    ]
    return [(row, each) for row in chosen if isinstance(each := row.standings[place], Standing)]


def _line(row: Row, bands: Sequence[np.ndarray], found: Sequence[Row]) -> Line:
    shaded = row is next(each for each in found if not each.theirs)
    return Line(
        f"{THEIRS if row.theirs else ''}{row.name}",
        bands[1],
        low=bands[0] if shaded else None,
        high=bands[2] if shaded else None,
        dashed=row.theirs,
    )


def _top(base: Baseline, optimum: float) -> float:
    """Random search after its first evaluations stands in the upper half."""
    return 1 + 1.5 * float(base.by_evaluations[9] / optimum - 1)


def _name(row: Row) -> str:
    return f"{THEIRS if row.theirs else ''}`{row.name}`"


def _interval(found: Score) -> str:
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def _table(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
