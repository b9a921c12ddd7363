"""Gaussian process with expected improvement: Optuna's sampler, told the trials that matter each round."""

import contextlib
from collections.abc import Iterator, Sequence

from pipeline.records.configuration.search_settings import Gp
from pipeline.records.search.search_trial import Trial
from pipeline.search.sampling.lattice_study import Plan, Values, ask
from pipeline.search.sampling.samplers import Sampler
from pipeline.search.spaces.lattice import Field
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategy import Budget
from pipeline.search.trial_losses import lessons, single_objective


def propose(space: Space, history: Sequence[Trial], budget: Budget) -> list[Point]:
    """The defaults, then where the process expects the largest improvement."""
    settings = budget.settings(Gp, "gp")
    plan = Plan(sampler=Sampler(name="gp", settings={"n_startup_trials": settings.startup}))
    field = Field(space, history, budget)
    kept = kept_trials(history, settings.trials_at_most)

    def judge(trials: Sequence[Trial]) -> list[Values | None]:
        values = single_objective(trials)
        return [
            value if trial.variant.id in kept else None for trial, value in zip(trials, values, strict=True)
        ]

    def one_by_one(count: int) -> list[Point]:
        with _single_thread():
            return ask(field, history, count, plan, judge)

    return field.defaults_first(one_by_one)


def kept_trials(history: Sequence[Trial], limit: int) -> set[str]:
    """Ids of the variants that the model sees: the best half of the limit, then the latest."""
    known = lessons(history)
    if len(known) <= limit:
        return {each.trial.variant.id for each in known}
    ranked = sorted(known, key=lambda each: float("inf") if each.loss is None else each.loss)
    kept = {each.trial.variant.id for each in ranked[: limit // 2]}
    for each in reversed(known):
        if len(kept) == limit:
            break
        kept.add(each.trial.variant.id)
    return kept


@contextlib.contextmanager
def _single_thread() -> Iterator[None]:
    """Matrices of this size are slower on many threads, by far so where others want the cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
