"""How strategies stand. In: what each found on each space. Out: a row for each, the best one first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

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

MOMENTS = 100
"""At which the budget in seconds is looked at."""


class Baseline(NamedTuple):
    """The median of random search on one space; seconds per call."""

    by_evaluations: np.ndarray
    by_cost: np.ndarray
    moments: np.ndarray
    """Seconds of recorded cost."""


class Standing(NamedTuple):
    """One strategy on one space."""

    curves: Curves
    by_cost: Curves
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
    """By space; a text where it failed, or too few of its searches ended."""

    @property
    def mean(self) -> float:
        """Mean score over the spaces; the least there is where one of them failed."""
        found = [each.evaluations.value for each in self.standings if isinstance(each, Standing)]
        return float(np.mean(found)) if len(found) == len(self.standings) else -np.inf

    @property
    def mean_by_seconds(self) -> float:
        """The same by seconds."""
        found = [each.seconds.value for each in self.standings if isinstance(each, Standing)]
        return float(np.mean(found)) if len(found) == len(self.standings) else -np.inf


def baseline(subject: "Subject", evaluations: int) -> Baseline:
    """What random search finds; the budget in seconds is what the evaluations cost on average."""
    table = subject.table
    moments = np.linspace(0, evaluations * float(table.cost.mean()), MOMENTS + 1)[1:]
    return Baseline(
        random_by_evaluations(table.seconds, evaluations),
        random_by_cost(table.seconds, table.cost, moments),
        moments,
    )


def rows(subjects: "Sequence[Subject]", baselines: Sequence[Baseline], repeats: int) -> list[Row]:
    """All strategies, by their mean score."""
    names = [(name, False) for name in subjects[0].ours] + [(name, True) for name in subjects[0].theirs]
    found = [
        Row(
            name,
            theirs,
            tuple(
                _standing((subject.theirs if theirs else subject.ours)[name], subject, base, repeats)
                for subject, base in zip(subjects, baselines, strict=True)
            ),
        )
        for name, theirs in names
    ]
    return sorted(found, key=lambda row: -row.mean)


def _standing(runs: "Runs", subject: "Subject", base: Baseline, repeats: int) -> Standing | str:
    if runs.failure is not None:
        return runs.failure
    if len(runs.runs) < repeats:
        return f"{len(runs.runs)} of {repeats} searches ended in the limit"
    found = [run.values for run in runs.runs]
    curves = by_evaluations(found, len(base.by_evaluations))
    cost = by_cost(found, [run.cost for run in runs.runs], base.moments)
    optimum = subject.table.optimum
    return Standing(
        curves=curves,
        by_cost=cost,
        evaluations=score(curves, base.by_evaluations, optimum),
        seconds=score(cost, base.by_cost, optimum),
        thought=float(np.mean([run.thought for run in runs.runs])),
        fewest=min(len(run.found) for run in runs.runs),
    )
