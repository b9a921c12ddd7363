"""Successive halving: many variants are measured briefly, the best of them longer, the last few fully.

Jamieson, Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS 2016.
A rung is a round. The settings say how briefly a rung measures, and on how much smaller a shape. A brief
measurement selects what the next rung measures; it is never a result.
"""

from collections.abc import Iterator, Sequence

from pipeline.records.configuration.search_settings import Search
from pipeline.records.record import Record, at_least
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import SHORTEST, Budget, Fidelity, Strategy, settings_of
from pipeline.search.strategy_registry import proposer
from pipeline.search.trial_losses import latest_losses


class SuccessiveHalving(Record, frozen=True, kw_only=True):
    """Settings of successive halving."""

    rungs: int = 3
    """Rounds of one bracket; the last one measures fully. With more rounds, another bracket starts."""
    keep: int = 3
    """One of this many variants continues to the next rung, where it is measured this many times as long."""
    sampler: str = "random"
    """The strategy that proposes the points of the first rung."""
    shrink: dict[str, int] = {}
    """Dimension of the problem -> factor by which it is shorter on each rung than on the next one; the last
    rung has the workload's shape. Empty: all rungs have it."""

    def __post_init__(self) -> None:
        """Raise ValueError for a bracket without rungs, or a dimension that would not become shorter."""
        at_least(self, rungs=2, keep=2)
        for name, factor in self.shrink.items():
            if factor < 2:
                raise ValueError(f"shrink.{name}: expected at least 2, got {factor}")

    def rungs_above(self, round_number: int) -> int:
        """How many rungs of its bracket come after a round."""
        return self.rungs - 1 - round_number % self.rungs


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """New points on the first rung of a bracket; on the others the best of the rung before."""
    settings = _settings(budget.search)
    rung = budget.round % settings.rungs
    if rung == 0:
        # Times on different shapes cannot be compared; on the first rung every variant has the same shape.
        first = [trial for trial in history if trial.round % settings.rungs == 0]
        return proposer(settings.sampler)(space, first if settings.shrink else history, budget)
    before = [trial for trial in history if trial.round == budget.round - 1]
    ranked = sorted(
        (each for each in latest_losses(before) if each.loss is not None),
        key=lambda each: (each.loss, each.trial.variant.id),
    )
    # The budget of a round is that of the first rung; later rungs get their share of it.
    wanted = max(1, len(before) // settings.keep)
    survivors = [each.trial.point for each in ranked[:wanted]]
    return survivors if budget.variants is None else survivors[: budget.variants]


def remarks(history: Sequence[Trial], budget: Budget) -> tuple[str, ...]:  # noqa: ARG001
    """Whether a round measures on a smaller shape."""
    settings = _settings(budget.search)
    above = settings.rungs_above(budget.round)
    if not settings.shrink or above == 0:
        return ()
    shorter = ", ".join(f"{name} up to {factor**above} times" for name, factor in settings.shrink.items())
    return (
        f"round {budget.round} measures on a shape that is shorter than the workload's ({shorter}, not below "
        f"{SHORTEST}): it only chooses what the next round measures",
    )


def fidelity(search: Search, round_number: int) -> Fidelity:
    """Each rung measures `keep` times as long as the one before; the last one of a bracket fully."""
    settings = _settings(search)
    above = settings.rungs_above(round_number)
    return Fidelity(
        share=float(settings.keep) ** -above,
        shrink={name: factor**above for name, factor in settings.shrink.items()},
    )


def problems(search: Search) -> Iterator[str]:
    """Fewer rounds than a bracket has rungs."""
    rungs = _settings(search).rungs
    if search.rounds < rungs:
        yield f"rounds: a bracket has {rungs} rungs, got {search.rounds}: nothing would be measured fully"


def sampler(search: Search) -> str:
    """The strategy that proposes the first rung."""
    return _settings(search).sampler


def _settings(search: Search | None) -> SuccessiveHalving:
    return settings_of(search, SuccessiveHalving, "successive_halving")


STRATEGY = Strategy(
    description="Many variants are measured briefly, the best of them longer, the last few fully.",
    propose=propose,
    settings=SuccessiveHalving,
    problems=problems,
    wraps=sampler,
    fidelity=fidelity,
    remarks=remarks,
)
