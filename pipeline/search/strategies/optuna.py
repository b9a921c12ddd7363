"""Optuna's samplers: the history in, the points that the sampler asks for out.

The sampler searches the lattice of valid points of each implementation (`pipeline.search.sampling`):

- `tpe`: tree-structured Parzen estimator (Bergstra et al., NIPS 2011); the round's own points count as bad
  ones, so that a round is not many times the same idea.
- `gp`: a Gaussian process with expected improvement, for few and slow measurements.
- `cmaes`: CMA-ES (Hansen, arXiv:1604.00772) with margin for whole numbers (Hamano et al., GECCO 2022).
- `nsgaii`, `nsgaiii`: non-dominated sorting (Deb et al., 2002) over several objectives.
- `qmc`: a quasi-Monte Carlo sequence, which covers the space evenly.
- `random`: independent draws.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Literal

from pipeline.records.configuration.search_settings import ObjectiveName
from pipeline.records.record import Record
from pipeline.records.search.search_trial import Trial
from pipeline.records.validation import at_least
from pipeline.search.sampling.lattice_study import Judge, SamplerPlan, Values, ask
from pipeline.search.sampling.samplers import Sampler, Setting
from pipeline.search.spaces.lattice import Field
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, Strategy
from pipeline.search.trial_losses import lessons, penalty, single_objective

SamplerName = Literal["tpe", "gp", "cmaes", "nsgaii", "nsgaiii", "qmc", "random"]
DEFAULTS: dict[str, dict[str, Setting]] = {
    "tpe": {"n_startup_trials": 8, "n_ei_candidates": 24, "multivariate": True, "constant_liar": True},
    "gp": {"n_startup_trials": 8},
    "cmaes": {"with_margin": True},
}
"""Where they differ from Optuna's own."""
POPULATION = {"cmaes": "popsize", "nsgaii": "population_size", "nsgaiii": "population_size"}
"""Samplers that go by generations, and the setting that says how large one is; by default a round."""
SMALLEST = {"cmaes": 5, "nsgaii": 2, "nsgaiii": 2}
"""Points of a generation; the package cmaes wants more than four."""


class Optuna(Record, frozen=True, kw_only=True):
    """Settings of the strategy `optuna`."""

    sampler: SamplerName = "tpe"
    objectives: tuple[ObjectiveName, ...] | None = None
    """All are minimized; one that nothing was measured of is left out, and reported. None: seconds, joules
    and error with nsgaii and nsgaiii, seconds with every other sampler."""
    trials_at_most: int = 60
    """Sampler gp: the model sees so many of the measured points, the best half and the latest; its cost is
    cubic."""
    settings: dict[str, Setting] = {}
    """Arguments of Optuna's sampler class, such as `n_startup_trials`."""

    def __post_init__(self) -> None:
        """Raise ValueError for objectives that the sampler cannot search by."""
        at_least(self, trials_at_most=2)
        wanted = self.objectives
        if wanted is None:
            return
        if not wanted or len(set(wanted)) < len(wanted):
            raise ValueError(f"objectives: expected one or more, each once, got {list(wanted)}")
        if len(wanted) > 1 and not self.sampler.startswith("nsga"):
            raise ValueError(f"objectives: {self.sampler} takes one, got {list(wanted)}; use sampler: nsgaii")

    def wanted(self) -> tuple[ObjectiveName, ...]:
        """The objectives, by default those of the sampler."""
        several: tuple[ObjectiveName, ...] = ("seconds", "joules", "error")
        return self.objectives or (several if self.sampler.startswith("nsga") else several[:1])


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then what the sampler asks for."""
    given = budget.settings(Optuna, "optuna")
    chosen = present(history, given.wanted()) or given.wanted()[:1]
    plan = SamplerPlan(
        sampler=Sampler(name=given.sampler, settings=_settings(given, budget)),
        objectives=len(chosen),
        generations=given.sampler in (*POPULATION, "qmc"),
        all_ordered=given.sampler == "cmaes",
    )
    field = Field(space, history, budget)
    judge = _judge(given, chosen, history)

    def ask_for(count: int) -> list[Point]:
        with _single_thread() if given.sampler == "gp" else contextlib.nullcontext():
            return ask(field, history, count, plan, judge)

    return field.defaults_first(ask_for)


def remarks(history: Sequence[Trial], budget: Budget) -> tuple[str, ...]:
    """The objectives that this search goes without, once there is a history to know it from."""
    given = budget.settings(Optuna, "optuna")
    measured = present(history, given.wanted())
    absent = [name for name in given.wanted() if name not in measured]
    if not history or not absent:
        return ()
    by = ", ".join(measured) or "nothing"
    return (f"{given.sampler}: nothing was measured of {', '.join(absent)}; it searches by {by}",)


def present(history: Sequence[Trial], objectives: Sequence[ObjectiveName]) -> tuple[ObjectiveName, ...]:
    """Those that something was measured of, in variants that passed."""
    return tuple(name for name in objectives if any(_value(trial, name) is not None for trial in history))


def _settings(given: Optuna, budget: Budget) -> dict[str, Setting]:
    settings = DEFAULTS.get(given.sampler, {}) | given.settings
    size = POPULATION.get(given.sampler)
    if size is not None and size not in settings:
        smallest = SMALLEST[given.sampler]
        settings = settings | {size: max(smallest, budget.variants_per_round or smallest)}
    return settings


def _judge(given: Optuna, chosen: Sequence[ObjectiveName], history: Sequence[Trial]) -> Judge:
    """How the study sees the trials."""
    if given.sampler.startswith("nsga"):
        return lambda trials: _several_objectives(trials, history, chosen)
    if given.sampler != "gp":
        return single_objective
    kept = _kept_trials(history, given.trials_at_most)

    def judge(trials: Sequence[Trial]) -> list[Values | None]:
        values = single_objective(trials)
        return [
            value if each.variant.id in kept else None for each, value in zip(trials, values, strict=True)
        ]

    return judge


def _kept_trials(history: Sequence[Trial], limit: int) -> set[str]:
    """Ids of the variants that the model sees: the best half of the limit, then the latest."""
    known = lessons(history)
    if len(known) <= limit:
        return {each.trial.variant.id for each in known}
    ranked = sorted(known, key=lambda each: math.inf if each.loss is None else each.loss)
    kept = {each.trial.variant.id for each in ranked[: limit // 2]}
    for each in reversed(known):
        if len(kept) == limit:
            break
        kept.add(each.trial.variant.id)
    return kept


def _several_objectives(
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


@contextlib.contextmanager
def _single_thread() -> Iterator[None]:
    """Matrices of this size are slower on many threads, much slower if others want the cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


STRATEGY = Strategy(
    description="Optuna's samplers: TPE, Gaussian process, CMA-ES, NSGA-II and -III, quasi-Monte Carlo.",
    propose=propose,
    settings=Optuna,
    may_be_wrapped=True,
    remarks=remarks,
    libraries=("cmaes", "numpy", "optuna", "scipy", "torch"),
)
