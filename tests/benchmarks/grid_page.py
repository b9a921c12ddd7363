"""TPE against a grid as a page. In: the grid, the searches, their winners side by side. Out: Markdown."""

# ruff: noqa: E501  (the page is text, wrapped as pages are)

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pipeline.records.configuration.search_settings import Search
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.search.recorded_space import RecordedResult, RecordedSpace
from pipeline.report.tables.search_tables import configuration
from pipeline.search.simulated_search import Recording, simulate
from pipeline.search.spaces.search_space import space_of
from pipeline.store.atomic import write_atomic
from tests.benchmarks.grid_scores import PART, WANTED, Score, allowed, chance, good, needed, score, verdict
from tests.benchmarks.machine import where
from tests.benchmarks.side_by_side import TIMES

if TYPE_CHECKING:
    from tests.benchmarks.tpe_against_grid import Study, Sweep

REPLAYED = ("optuna", "random", "surrogate", "evolution")
REPLAYS = 100
AIM = "all searches"
CLOSER = 0.99
"""Where 95 % is easy, this tells the strategies apart."""


class Replayed(NamedTuple):
    """One strategy on the measured grid, with many seeds."""

    strategy: str
    share: float
    """Of the best speed."""
    searches: int
    reached: int
    """Within a quarter of the grid's measurements."""
    median: float
    """Measurements until then, infinite where the middle search never was there."""


def publish(study: "Study", command: str, path: Path) -> None:
    """Write the page, and print it."""
    text = "\n\n".join(page(study, command, replays(study, REPLAYS))) + "\n"
    write_atomic(path, text.encode())
    print(text)


def page(study: "Study", command: str, replayed: Sequence[Replayed]) -> list[str]:
    """Its paragraphs."""
    shares = [_share(each, study) for each in study.searches]
    return [
        "# TPE compared with a grid: the C++ matmul",
        f"```sh\n{command}\n```",
        where(("optuna", "numpy", "snakemake")),
        _answer(study, score(shares)),
        "## The grid",
        _grid(study),
        "## The searches",
        _searches(study, shares),
        "## The same searches replayed on the grid's measurements",
        _replays(replayed, study),
        _method(study),
    ]


def replays(study: "Study", count: int) -> list[Replayed]:
    """Each strategy with so many seeds, in process, on the times that the grid measured."""
    recording = Recording(recorded(study))
    least = min(_times(study))
    found = []
    for strategy in REPLAYED:
        searches = [simulate(recording, _with(study.space.search, strategy, seed)) for seed in range(count)]
        for share in (WANTED, CLOSER):
            counts = [needed(each.curve, least, share) for each in searches]
            found.append(
                Replayed(
                    strategy=strategy,
                    share=share,
                    searches=count,
                    reached=sum(each is not None for each in counts),
                    median=statistics.median_low(
                        float("inf") if each is None else float(each) for each in counts
                    ),
                )
            )
    return found


def recorded(study: "Study") -> RecordedSpace:
    """The grid's measurements as a space with results."""
    (subspace,) = space_of(study.space).subspaces
    return RecordedSpace(
        source="grid",
        format="T4",
        kernel=subspace.implementation,
        device=None,
        tunables=subspace.values,
        defaults=subspace.default,
        constraints=subspace.constraints,
        constants=subspace.constants,
        results=tuple(
            RecordedResult(
                tunables=each.variant.tunables,
                outcome=each.outcome,
                reason=each.reason,
                samples=each.samples,
                median_seconds=each.seconds.value if each.seconds else None,
            )
            for each in study.grid.trials
        ),
    )


def _with(search: Search, strategy: str, seed: int) -> Search:
    """The search as it ran, with another seed; another strategy has its own defaults."""
    if strategy == search.strategy:
        return msgspec.structs.replace(search, seed=seed)
    return msgspec.structs.replace(search, strategy=strategy, settings={}, seed=seed)


def _share(search: "Sweep", study: "Study") -> ConfidenceInterval | None:
    return None if search.winner is None else study.shares.get(search.winner.variant.id)


def _times(study: "Study") -> list[float]:
    return [each.seconds.value for each in study.grid.measured if each.seconds is not None]


def _answer(study: "Study", found: Score) -> str:
    most = max(len(each.trials) for each in study.searches)
    times = _times(study)
    among, drawn = good(times), allowed(len(times))
    met = "reached" if found.reached == found.searches else "not reached"
    return (
        f"**{found.reached} of {found.searches} searches** found a variant with at least {WANTED:.0%} of the speed of "
        f"the grid's best, {found.certain} of them with the whole interval above it (goal: {AIM}; {met}). The "
        f"median search reached {found.median:.1%}, the worst one {found.worst:.1%}. Confidence interval for the share of "
        f"seeds that reach it: {found.low:.0%} to {found.high:.0%}.\n\n"
        f"They measured at most {most} of the grid's {len(times)} variants; a quarter is "
        f"{len(times) / PART:g}. {among} of the {len(times)} variants are that good by the grid's own times, so "
        f"{drawn} random variants contain one with a probability of {chance(among, len(times), drawn):.0%}: no search is "
        f"needed for that."
    )


def _grid(study: "Study") -> str:
    grid = study.grid
    failed = len(grid.trials) - len(grid.measured)
    lines = [
        f"{len(grid.trials)} valid variants, {len(grid.measured)} measured, {failed} failed, in {grid.seconds:.0f} s "
        f"including compilation and verification. The fastest, each measured {TIMES} more times together with the first:",
        "",
        "| place in the grid | variant | time in the grid | speed over the first's, side by side |",
        "| ---: | --- | ---: | ---: |",
    ]
    for place, each in enumerate(grid.measured[: len(study.contenders)], start=1):
        identity = each.variant.id
        found = study.contenders.get(identity)
        name = configuration(each.variant.tunables)
        shown = f"**{name}**" if identity == study.reference else name
        assert each.seconds is not None
        lines.append(
            f"| {place} | {shown} | {1e3 * each.seconds.value:.3f} ms | {_ratio(found, first=place == 1)} |"
        )
    lines += ["", "The fastest of these, in bold, is the reference for the searches."]
    return "\n".join(lines)


def _searches(study: "Study", shares: Sequence[ConfidenceInterval | None]) -> str:
    lines = [
        f"Each is `kernelmill run … {' '.join(study.searches[0].overrides[:-1])} search.seed=N`, a separate run that "
        "finds the binaries and verdicts of the grid in the store, but no times.",
        "",
        "| seed | measured | rounds | wall time | winner | of the best speed, side by side | 95 % |",
        "| ---: | ---: | ---: | ---: | --- | ---: | --- |",
    ]
    for each, share in zip(study.searches, shares, strict=True):
        seed = each.overrides[-1].rpartition("=")[2]
        name = "none" if each.winner is None else configuration(each.winner.variant.tunables)
        rounds = 1 + max((trial.round for trial in each.trials), default=-1)
        told = "no measurement" if share is None else verdict(share)
        lines.append(
            f"| {seed} | {len(each.trials)} | {rounds} | {each.seconds:.0f} s | {name} | {_percent(share)} | {told} |"
        )
    return "\n".join(lines)


def _replays(replayed: Sequence[Replayed], study: "Study") -> str:
    drawn = allowed(len(_times(study)))
    lines = [
        f"{REPLAYS} seeds per strategy look up the times of the grid (`pipeline.search.simulated_search`). Nothing is "
        "measured, and there is no noise between two lookups.",
        "",
        f"| strategy | share of the best speed | searches that reach it in {drawn} | measurements that half of them need |",
        "| --- | ---: | ---: | ---: |",
    ]
    for each in replayed:
        middle = "more than allowed" if each.median == float("inf") else f"{each.median:.0f}"
        lines.append(
            f"| `{each.strategy}` | {each.share:.0%} | {each.reached} of {each.searches} | {middle} |"
        )
    times = _times(study)
    lines += [
        "",
        f"{good(times, CLOSER)} of the {len(times)} variants have {CLOSER:.0%} of the best speed: {drawn} random variants contain one "
        f"with a probability of {chance(good(times, CLOSER), len(times), drawn):.0%}.",
    ]
    return "\n".join(lines)


def _method(study: "Study") -> str:
    task = " ".join([*study.task, *study.grid.overrides])
    return f"""## How

- **The space** is the kernel's own with more values, so that a search over a quarter of it is meaningful:
  `kernelmill run {task}`.
- **A measurement** is that of `profile=standard` without baselines: at least 8 batches, until the interval of the median
  is within 3 %, at most 0.4 s on a quiet machine.
- **A search's winner** is the fastest by the search's own noisy times, as for a user. It is then compared with the grid's
  best in a new measurement: both alternate in one run, in separate processes, {TIMES} times; the
  median ratio counts, and the interval contains the intervals of all of them (95 % each, bootstrap).
- **reached**, **missed**: the whole interval is on one side of {WANTED:.0%}; else **undecided**. A winner that is the grid's
  best itself has its speed by definition. The first line counts ratios.
- **The settings** of `optuna` are those of `conf/search/optuna.yaml`; nothing was tuned for this space."""


def _percent(share: ConfidenceInterval | None) -> str:
    if share is None:
        return "–"
    if share.low == share.high:
        return f"{share.value:.1%}"
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"


def _ratio(found: ConfidenceInterval | None, *, first: bool) -> str:
    if first:
        return "1"
    return "not measured" if found is None else f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"
