"""Non-dominated sorting: Optuna's NSGA-II over time, energy and error, as far as they were measured.

Deb, Pratap, Agarwal, Meyarivan, "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE
Transactions on Evolutionary Computation 6(2), 2002.
"""

import math
from collections.abc import Sequence

from pipeline.records.configuration.search_settings import Nsga2, ObjectiveName
from pipeline.records.search.search_trial import Trial
from pipeline.search.sampling.lattice_study import Plan, Values, ask
from pipeline.search.sampling.samplers import Sampler
from pipeline.search.spaces.lattice import Field
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget
from pipeline.search.trial_losses import penalty


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then offspring of the variants that no other one beats in everything."""
    settings = budget.settings(Nsga2, "nsga2")
    chosen = present(history, settings.objectives) or settings.objectives[:1]
    population = max(2, settings.population or budget.variants_per_round or 2)
    plan = Plan(
        sampler=Sampler(name="nsgaii", settings={"population_size": population}),
        objectives=len(chosen),
        generations=True,
    )
    field = Field(space, history, budget)

    def judge(trials: Sequence[Trial]) -> list[Values | None]:
        return _values(trials, history, chosen)

    return field.defaults_first(lambda count: ask(field, history, count, plan, judge))


def present(history: Sequence[Trial], objectives: Sequence[ObjectiveName]) -> tuple[ObjectiveName, ...]:
    """Those that something was measured of, in variants that passed."""
    return tuple(name for name in objectives if any(_value(trial, name) is not None for trial in history))


def remarks(history: Sequence[Trial], budget: Budget) -> tuple[str, ...]:
    """What this search goes without, once there is a history to know it from."""
    wanted = budget.settings(Nsga2, "nsga2").objectives
    there = present(history, wanted)
    absent = [name for name in wanted if name not in there]
    if not history or not absent:
        return ()
    return (
        f"nsga2: nothing was measured of {', '.join(absent)}; it searches by {', '.join(there) or 'nothing'}",
    )


def _values(
    trials: Sequence[Trial], history: Sequence[Trial], objectives: Sequence[ObjectiveName]
) -> list[Values | None]:
    """Objectives of each trial; a failure is worse than all that was measured in each of them."""
    worst = [penalty([_value(trial, name) for trial in history]) for name in objectives]
    if None in worst:
        return [None] * len(trials)
    rows: list[Values | None] = []
    for trial in trials:
        found = [_value(trial, name) for name in objectives]
        rows.append(tuple(w if v is None else v for v, w in zip(found, worst, strict=True) if w is not None))
    return rows


def _value(trial: Trial, name: ObjectiveName) -> float | None:
    """Logarithms of what has a scale; only a variant that was measured counts."""
    if trial.seconds is None:
        return None
    if name == "seconds":
        return math.log(trial.seconds.value)
    if name == "joules":
        return None if trial.joules is None or trial.joules <= 0 else math.log(trial.joules)
    return trial.error
