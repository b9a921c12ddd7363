"""Tree-structured Parzen estimator: Optuna's sampler, told all trials each round.

Bergstra, Bardenet, Bengio, Kegl, "Algorithms for Hyper-Parameter Optimization", NIPS 2011. Points under way
count as bad ones (constant liar), so that a round is not many times the same idea.
"""

from collections.abc import Sequence

from pipeline.records.configuration.search_settings import Tpe
from pipeline.records.search.search_trial import Trial
from pipeline.search.sampling.lattice_study import Plan, ask
from pipeline.search.sampling.samplers import Sampler
from pipeline.search.spaces.lattice import Field
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget
from pipeline.search.trial_losses import single_objective


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then what the estimator expects most of."""
    settings = budget.settings(Tpe, "tpe")
    plan = Plan(
        sampler=Sampler(
            name="tpe",
            settings={
                "n_startup_trials": settings.startup,
                "n_ei_candidates": settings.candidates,
                "multivariate": settings.multivariate,
                "constant_liar": True,
            },
        )
    )
    field = Field(space, history, budget)
    return field.defaults_first(lambda count: ask(field, history, count, plan, single_objective))
