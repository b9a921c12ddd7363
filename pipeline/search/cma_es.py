"""Covariance matrix adaptation: Optuna's sampler over the steps of the tunables, generation by generation.

Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772; with margin for whole numbers: Hamano et
al., "CMA-ES with Margin", GECCO 2022. Names and truth values are steps in their declared order here.
"""

from collections.abc import Sequence

from pipeline.records.configuration.search_settings import CmaEs
from pipeline.records.search.search_trial import Trial
from pipeline.search.sampling.lattice_study import Plan, ask
from pipeline.search.sampling.samplers import Sampler
from pipeline.search.spaces.lattice import Field
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget
from pipeline.search.trial_losses import single_objective

SMALLEST = 5
"""Of a generation: the package cmaes wants more than four points of it."""


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then the next generations."""
    settings = budget.settings(CmaEs, "cma_es")
    population = max(SMALLEST, settings.population or budget.variants_per_round or SMALLEST)
    sampler = Sampler(name="cmaes", settings={"popsize": population, "with_margin": settings.margin})
    plan = Plan(sampler=sampler, generations=True, all_ordered=True)
    field = Field(space, history, budget)
    return field.defaults_first(lambda count: ask(field, history, count, plan, single_objective))
