"""The history as a search sees it: a loss for each trial, smaller is better."""

import math
from collections.abc import Sequence

from pipeline.records.record import Record
from pipeline.records.search.search_trial import Trial


class TrialLoss(Record, frozen=True, kw_only=True):
    """A trial with its loss."""

    trial: Trial
    loss: float | None
    """Natural logarithm of the seconds per call; None without a measurement."""


def seconds_of(trial: Trial) -> float | None:
    """Seconds of a full or brief measurement; a brief one is for the search only."""
    interval = trial.seconds or trial.screened
    return None if interval is None else interval.value


def latest_losses(history: Sequence[Trial]) -> list[TrialLoss]:
    """Each variant once, with its latest measurement."""
    latest = {trial.variant.id: trial for trial in history}
    return [TrialLoss(trial=trial, loss=_loss(trial)) for trial in latest.values()]


def best(history: Sequence[Trial]) -> Trial | None:
    """The fastest variant with a full measurement; None if there is none."""
    measured = [trial for trial in history if trial.seconds is not None]
    return min(measured, key=_full_seconds, default=None)


def best_so_far(history: Sequence[Trial], rounds: int) -> list[float | None]:
    """Round -> seconds per call of the best full measurement until then."""
    curve: list[float | None] = []
    for number in range(rounds):
        found = best([trial for trial in history if trial.round <= number])
        curve.append(None if found is None else _full_seconds(found))
    return curve


def penalty(losses: Sequence[float | None]) -> float | None:
    """The loss of a failure for models that need a number: worse than everything measured.

    Half the range above the worst, which does not distort the model; None if nothing was measured. It is used
    in models only, and never reported as a time.
    """
    known = [loss for loss in losses if loss is not None]
    if not known:
        return None
    return max(known) + 0.5 * (max(known) - min(known)) + 0.1


def _loss(trial: Trial) -> float | None:
    seconds = seconds_of(trial)
    return math.log(seconds) if seconds is not None and seconds > 0 else None


def _full_seconds(trial: Trial) -> float:
    assert trial.seconds is not None
    return trial.seconds.value


def single_objective(trials: Sequence[Trial]) -> list[tuple[float, ...] | None]:
    """The loss of each trial, or the penalty for a failure; None if nothing was measured."""
    losses = [_loss(trial) for trial in trials]
    worst = penalty(losses)
    return [None if worst is None else (worst if loss is None else loss,) for loss in losses]
