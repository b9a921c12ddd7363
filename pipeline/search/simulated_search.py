"""Simulate a search on recorded results, in one process: its trials, and the best time by number of variants.

Nothing is compiled or measured: results are looked up. A point without a recorded result fails as
`not_recorded`, costs nothing and counts as a variant.
"""

from collections.abc import Mapping, Sequence

import msgspec

from pipeline.measure.comparison.screening import share_of
from pipeline.records.configuration.search_settings import Search, Stop
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.results.variant import Variant
from pipeline.records.search.recorded_space import RecordedResult, RecordedSpace
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.search_space import Point, Space, recorded_space
from pipeline.search.stopping_rules import left, stop
from pipeline.search.strategy import Budget, Identity, identity
from pipeline.search.strategy_registry import fidelities, proposer

NO_RECORD = "the recorded space has no result for this point"


class Simulated(Record, frozen=True, kw_only=True):
    """The outcome of a simulated search."""

    trials: tuple[Trial, ...]
    """In the order in which they were proposed."""
    curve: tuple[float | None, ...]
    """Number of variants - 1 -> seconds per call of the best of them; None before the first that passed."""
    stop: Stop | None
    """Why it ended before its rounds did."""


class Recording:
    """A recorded space, prepared for many simulations."""

    def __init__(self, recorded: RecordedSpace) -> None:
        subspace = recorded_space(recorded)
        self.space = Space(subspaces=(subspace,))
        self._name = subspace.implementation
        self._results: Mapping[Identity, RecordedResult] = {
            identity((self._name, result.tunables)): result for result in recorded.results
        }

    @property
    def best(self) -> float | None:
        """Seconds per call of the best recorded result."""
        times = [each.median_seconds for each in self._results.values() if each.median_seconds is not None]
        return min(times, default=None)

    def trial(self, point: Point, round_number: int, share: float = 1.0) -> Trial:
        """The recorded result of a point; with a share below 1, of that share of its samples."""
        found = self._results.get(identity(point))
        outcome = Outcome.NOT_RECORDED if found is None else found.outcome
        reason = NO_RECORD if found is None else found.reason
        median = _interval(found, share)
        if share < 1 and median is not None:
            outcome, reason = Outcome.SCREENED, f"measured briefly ({share:.0%} of its samples)"
        full = median if share >= 1 else None
        return Trial(
            variant=_variant(point),
            round=round_number,
            stage="compile" if outcome is Outcome.COMPILE_ERROR else "profile",
            outcome=outcome,
            reason=reason,
            seconds=full,
            samples=found.samples if found and full else (),
            screened=None if full else median,
            joules=found.joules if found and full else None,
            spent=_spent(found, share),
        )


def simulate(recording: Recording, search: Search) -> Simulated:
    """Run all rounds of a search, as generate would.

    Raises
    ------
    ConfigError
        The strategy is not known, or cannot search this space.
    """
    levels = fidelities(search)
    if any(each.shrink for each in levels):
        raise ConfigError(f"search.{search.strategy}.shrink: the results were recorded on one shape")
    propose = proposer(search.strategy)
    screening = tuple(each.share for each in levels)
    history: list[Trial] = []
    ended: Stop | None = None
    for number in range(search.rounds):
        ended = stop(search, history, number)
        if ended is not None:
            break
        budget = Budget(
            round=number,
            rounds=search.rounds,
            variants=left(search, history),
            variants_per_round=search.variants_per_round,
            seed=search.seed,
            search=search,
        )
        points = propose(recording.space, history, budget)
        if not points and not screening:
            ended = Stop(kind="exhausted", reason=f"{search.strategy} has nothing more to propose")
            break
        share = share_of(screening, number)
        history += [recording.trial(point, number, share) for point in points]
    return Simulated(trials=tuple(history), curve=best_by_variant(history), stop=ended)


def repeat(recording: Recording, search: Search, seeds: Sequence[int]) -> list[Simulated]:
    """The same search with several seeds."""
    return [simulate(recording, msgspec.structs.replace(search, seed=seed)) for seed in seeds]


def best_by_variant(trials: Sequence[Trial]) -> tuple[float | None, ...]:
    """Best seconds per call after each variant, of full measurements only."""
    curve: list[float | None] = []
    best: float | None = None
    for trial in trials:
        if trial.seconds is not None and (best is None or trial.seconds.value < best):
            best = trial.seconds.value
        curve.append(best)
    return tuple(curve)


def _interval(found: RecordedResult | None, share: float) -> ConfidenceInterval | None:
    """Of the recorded samples; its ends are the extremes: a bootstrap of thousands of points takes hours."""
    if found is None or found.outcome is not Outcome.PASSED or found.median_seconds is None:
        return None
    samples = sorted(found.samples[: max(1, round(len(found.samples) * share))]) or [found.median_seconds]
    middle = found.median_seconds if share >= 1 else samples[len(samples) // 2]
    return ConfidenceInterval(
        value=middle, low=min(samples[0], middle), high=max(samples[-1], middle), confidence=1.0
    )


def _spent(found: RecordedResult | None, share: float) -> float:
    if found is None:
        return 0.0
    benchmark = found.benchmark_seconds or 0.0
    return found.cost_seconds - benchmark * (1 - share)


def _variant(point: Point) -> Variant:
    implementation, tunables = point
    return Variant(
        kernel=implementation,
        implementation=implementation,
        backend="recorded",
        source_digest="recorded",
        attributes={},
        tunables=tunables,
    )
