"""Successive halving: many variants are measured briefly, the best of them longer, the last few fully.

Jamieson, Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS 2016.
A rung is a round. How briefly a rung measures, and on how much smaller a shape, stands in the settings
(`SuccessiveHalving.share`, `.shrink`). What came of it is a hint for the next rung, never a result.
"""

from collections.abc import Sequence

from pipeline.records.configuration.search_settings import SHORTEST, SuccessiveHalving
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget, Strategy
from pipeline.search.strategy_registry import proposer
from pipeline.search.trial_losses import lessons


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """New points on the first rung of a bracket; on the others the best of the rung before."""
    settings = budget.settings(SuccessiveHalving, "successive_halving")
    rung = budget.round % settings.rungs
    if rung == 0:
        # Times on shapes of several sizes do not compare: every variant has one on the first rung.
        first = [trial for trial in history if trial.round % settings.rungs == 0]
        return proposer(settings.sampler)(space, first if settings.shrink else history, budget)
    before = [trial for trial in history if trial.round == budget.round - 1]
    ranked = sorted(
        (each for each in lessons(before) if each.loss is not None),
        key=lambda each: (each.loss, each.trial.variant.id),
    )
    # The budget of a round is that of the first rung; later ones have their share of it.
    wanted = max(1, len(before) // settings.keep)
    survivors = [each.trial.point for each in ranked[:wanted]]
    return survivors if budget.variants is None else survivors[: budget.variants]


def remarks(history: Sequence[Trial], budget: Budget) -> tuple[str, ...]:  # noqa: ARG001
    """That a round measures on a smaller shape, where the workload's is not small already."""
    settings = budget.settings(SuccessiveHalving, "successive_halving")
    above = settings.rungs_above(budget.round)
    if not settings.shrink or above == 0:
        return ()
    shorter = ", ".join(f"{name} up to {factor**above} times" for name, factor in settings.shrink.items())
    return (
        f"round {budget.round} measures on a shape that is shorter than the workload's ({shorter}, not below "
        f"{SHORTEST}): it only chooses what the next round measures",
    )


STRATEGY = Strategy(
    description="Many variants are measured briefly, the best of them longer, the last few fully.",
    propose=propose,
    wraps=lambda search: (search.successive_halving or SuccessiveHalving()).sampler,
    remarks=remarks,
)
