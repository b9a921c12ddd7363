"""What a history says to a search: trials in, the value that each of them has for it out; less is better."""

import math
from collections.abc import Sequence

from pipeline.records.record import Record
from pipeline.records.search.search_trial import Trial


class Lesson(Record, frozen=True, kw_only=True):
    """One trial as a search sees it."""

    trial: Trial
    loss: float | None
    """Natural logarithm of the seconds per call; None where nothing was measured."""


def seconds_of(trial: Trial) -> float | None:
    """What was measured, fully or briefly: for the search alone."""
    interval = trial.seconds or trial.screened
    return None if interval is None else interval.value


def lessons(history: Sequence[Trial]) -> list[Lesson]:
    """Each variant once, with its latest word: one that was measured again is known better."""
    latest = {trial.variant.id: trial for trial in history}
    return [Lesson(trial=trial, loss=_loss(trial)) for trial in latest.values()]


def best(history: Sequence[Trial]) -> Trial | None:
    """The fastest variant among those with a full measurement; None where there is none."""
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
    """What a failure counts as, for models that need a number: worse than all that was measured.

    Half the spread beyond the worst, so that a model is led away and not torn; None where nothing was
    measured. It lives in a model only, and is no variant's time.
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
    """The loss of each trial, of a failure the penalty; None where nothing was measured at all."""
    losses = [_loss(trial) for trial in trials]
    worst = penalty(losses)
    return [None if worst is None else (worst if loss is None else loss,) for loss in losses]
