"""When a search ends: budgets of variants, seconds and joules, and convergence."""

from collections.abc import Sequence

from pipeline.records.configuration.search_settings import Convergence, Search, Stop
from pipeline.records.search.search_trial import Trial
from pipeline.search.trial_losses import best_so_far


def stop(search: Search, history: Sequence[Trial], round_number: int) -> Stop | None:
    """The reason to propose nothing in a round; None to continue.

    Seconds and joules are checked between rounds: a round that exceeds a budget is completed.
    """
    if not history:
        return None
    return _spent(search, history) or _converged(search, history, round_number)


def left(search: Search, history: Sequence[Trial]) -> int | None:
    """Maximum number of variants in the next round; None: the whole space."""
    if search.variants is None:
        return search.variants_per_round
    remaining = max(search.variants - len(history), 0)
    return remaining if search.variants_per_round is None else min(search.variants_per_round, remaining)


def _spent(search: Search, history: Sequence[Trial]) -> Stop | None:
    if search.variants is not None and len(history) >= search.variants:
        reason = f"the budget of {search.variants} variants is spent"
        return Stop(kind="variants", reason=reason)
    seconds = sum(trial.spent for trial in history)
    if search.seconds is not None and seconds >= search.seconds:
        return Stop(
            kind="seconds",
            reason=f"the budget of {search.seconds:g} s is spent: the variants took {seconds:.3g} s",
        )
    return None if search.joules is None else _spent_joules(search.joules, history)


def _spent_joules(budget: float, history: Sequence[Trial]) -> Stop | None:
    measured = [trial for trial in history if trial.seconds is not None]
    counted = [trial.spent_joules for trial in history if trial.spent_joules is not None]
    if measured and not counted:
        reason = (
            f"a budget of {budget:g} J cannot be kept: no energy was measured (see profile.energy_seconds)"
        )
        return Stop(kind="joules", reason=reason)
    if sum(counted) >= budget:
        reason = f"the budget of {budget:g} J is spent: the measurements took {sum(counted):.3g} J"
        return Stop(kind="joules", reason=reason)
    return None


def _converged(search: Search, history: Sequence[Trial], round_number: int) -> Stop | None:
    """Checked once there are enough rounds; a search without a measurement has not converged."""
    rule: Convergence | None = search.convergence
    if rule is None or round_number <= rule.rounds:
        return None
    curve = best_so_far(history, round_number)
    before, now = curve[-1 - rule.rounds], curve[-1]
    if before is None or now is None or before - now > rule.percent / 100 * before:
        return None
    last = "the last round" if rule.rounds == 1 else f"the last {rule.rounds} rounds"
    gain = 100 * (before - now) / before
    reason = f"converged: {gain:.2g} % gained in {last} (convergence.percent: {rule.percent:g})"
    return Stop(kind="converged", reason=reason)
