"""A search on recorded results: what was recorded is looked up, and a brief measurement is no result."""

import msgspec
import pytest

from pipeline.records.configuration.search_settings import Search
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Outcome
from pipeline.records.search.recorded_space import RecordedResult, RecordedSpace
from pipeline.search import strategy_registry
from pipeline.search.simulated_search import NO_RECORD, Recording, repeat, simulate
from tests.search.synthetic import WIDE, valley

(SUBSPACE,) = WIDE.subspaces


def recorded() -> RecordedSpace:
    """The valley, as a file would have it; one valid point was not measured."""
    results = []
    for tunables in SUBSPACE.points()[1:]:
        found = valley(("cpp", tunables))
        if isinstance(found, Outcome):
            results.append(RecordedResult(tunables=tunables, outcome=found, reason="segmentation fault"))
        else:
            samples = tuple(found * factor for factor in (1.2, 1.0, 1.0, 1.01))
            results.append(
                RecordedResult(
                    tunables=tunables,
                    outcome=Outcome.PASSED,
                    samples=samples,
                    median_seconds=found,
                    compile_seconds=2.0,
                    benchmark_seconds=1.0,
                )
            )
    return RecordedSpace(
        source="valley.json",
        format="T4",
        kernel="cpp",
        device="none",
        tunables=SUBSPACE.values,
        constraints=SUBSPACE.constraints,
        results=tuple(results),
    )


RECORDING = Recording(recorded())
SEARCH = Search(name="", description="", strategy="random", rounds=5, variants_per_round=8)


def test_smaller_shapes_were_not_recorded() -> None:
    """A recorded space is of one shape: another is refused, not made up."""
    ladder = {"successive_halving": {"shrink": {"M": 2}}}
    search = msgspec.structs.replace(SEARCH, strategy="successive_halving", settings=ladder)
    with pytest.raises(
        ConfigError, match="successive_halving.shrink: the results were recorded on one shape"
    ):
        simulate(RECORDING, search)


SIMULATED = [
    name
    for name in strategy_registry.own_names()
    if strategy_registry.strategy(name).propose and name != "transfer"  # it begins with others' winners
]


@pytest.mark.parametrize("name", SIMULATED)
def test_every_strategy_can_be_simulated(name: str) -> None:
    """The curve falls and never lies below the best that was recorded."""
    search = msgspec.structs.replace(SEARCH, strategy=name)
    found = simulate(RECORDING, search)
    times = [value for value in found.curve if value is not None]
    assert len(found.curve) == len(found.trials) <= 40
    assert times == sorted(times, reverse=True)
    assert RECORDING.best is not None
    assert all(value >= RECORDING.best for value in times)
    assert simulate(RECORDING, search) == found


def test_failures_and_gaps() -> None:
    """A recorded failure keeps its reason; what was not recorded says so. Neither has a time."""
    gap = RECORDING.trial(("cpp", SUBSPACE.points()[0]), 0)
    assert (gap.outcome, gap.reason, gap.spent) == (Outcome.NOT_RECORDED, NO_RECORD, 0.0)
    crashed = next(point for point in WIDE.points()[1:] if isinstance(valley(point), Outcome))
    trial = RECORDING.trial(crashed, 3)
    assert (trial.outcome, trial.reason, trial.seconds) == (Outcome.CRASHED, "segmentation fault", None)


def test_a_brief_measurement() -> None:
    """A share of the samples, a share of the time, and no result."""
    point = next(point for point in WIDE.points()[1:] if isinstance(valley(point), float))
    brief, full = RECORDING.trial(point, 0, 0.25), RECORDING.trial(point, 0)
    assert brief.outcome is Outcome.SCREENED
    assert brief.seconds is None
    assert brief.screened is not None and full.seconds is not None
    assert brief.screened.value == pytest.approx(1.2 * full.seconds.value)
    assert (brief.spent, full.spent) == (pytest.approx(2.25), 3.0)


def test_budgets_hold() -> None:
    """Seconds are those that were recorded."""
    found = simulate(RECORDING, msgspec.structs.replace(SEARCH, seconds=30.0))
    assert found.stop is not None
    assert found.stop.kind == "seconds"
    assert len(found.trials) < 40


def test_seeds() -> None:
    """Each repetition has its own."""
    one, other = repeat(RECORDING, SEARCH, range(2))
    assert one.trials != other.trials
    assert one == simulate(RECORDING, SEARCH)
