"""How searches are held against a grid: what counts as reached, what chance finds, what is replayed."""

import itertools
from pathlib import Path

import msgspec
import pytest

from pipeline.plan.plan_cache import current_plan
from pipeline.records.configuration.search_settings import Search
from pipeline.records.layout import spec_path
from pipeline.records.outcome import Outcome
from pipeline.records.planning.specs import GenerateSpec
from pipeline.records.record import from_plain, read_record, to_json
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.records.results.variant import Variant
from pipeline.records.search.search_trial import Trial
from pipeline.search.spaces.search_space import Space, Subspace
from tests.benchmarks import grid_page
from tests.benchmarks.figures import ROOT
from tests.benchmarks.grid_page import Replayed, page, recorded, replays
from tests.benchmarks.grid_scores import allowed, chance, good, needed, score, verdict
from tests.benchmarks.side_by_side import widest
from tests.benchmarks.tpe_against_grid import Study, Sweep


def share(low: float, value: float, high: float) -> ConfidenceInterval:
    """Speed of a winner over the grid's best."""
    return ConfidenceInterval(value=value, low=low, high=high, confidence=0.95)


def test_a_quarter_is_at_most_a_quarter() -> None:
    """What does not divide is rounded down."""
    assert [allowed(count) for count in (4, 7, 8, 141)] == [1, 1, 2, 35]


def test_what_counts_as_reached() -> None:
    """The ratio counts for the number of searches, the whole interval for certainty; none is a miss."""
    shares = [share(0.96, 0.97, 0.98), share(0.94, 0.96, 0.97), share(0.90, 0.94, 0.96), None]
    found = score(shares)
    assert (found.searches, found.reached, found.certain) == (4, 2, 1)
    assert (found.median, found.worst) == (0.94, 0.0)
    assert found.low < 0.5 < found.high
    told = [verdict(each) for each in shares if each] + [verdict(share(0.8, 0.9, 0.94))]
    assert told == ["reached", "undecided", "undecided", "missed"]
    with pytest.raises(ValueError, match="expected at least one search, got none"):
        score([])


def test_chance_is_exact() -> None:
    """The same as over every set that can be drawn."""
    drawn = list(itertools.combinations(range(7), 3))
    brute = sum(any(each < 2 for each in chosen) for chosen in drawn) / len(drawn)
    assert chance(2, 7, 3) == pytest.approx(brute)
    assert (chance(0, 7, 3), chance(5, 7, 3)) == (0.0, 1.0)


def test_the_good_ones_and_when_they_are_found() -> None:
    """95 % of the speed is 1 / 0.95 of the time; failures count as measurements."""
    assert good([1.0, 1.05, 1.06, 2.0]) == 2
    assert needed([2.0, None, 1.05, 1.0], 1.0) == 3
    assert needed([2.0, None], 1.0) is None


def test_repeated_comparisons_are_as_wide_as_all_of_them() -> None:
    """The middle ratio, the outermost ends."""
    found = widest([share(0.9, 1.0, 1.1), share(0.95, 0.97, 1.2), share(0.98, 1.05, 1.06)])
    assert (found.low, found.value, found.high) == (0.9, 1.0, 1.2)


def trial(block: int, unroll: int, seconds: float | None) -> Trial:
    """One variant of the made-up grid."""
    variant = Variant(
        kernel="toy",
        implementation="cpp",
        backend="cpp",
        source_digest="",
        attributes={},
        tunables={"BLOCK": block, "UNROLL": unroll},
    )
    if seconds is None:
        return Trial(variant=variant, round=0, stage="compile", outcome=Outcome.COMPILE_ERROR, reason="no")
    return Trial(
        variant=variant,
        round=0,
        stage="profile",
        outcome=Outcome.PASSED,
        seconds=share(seconds, seconds, seconds),
        samples=(seconds,),
    )


class Spec:
    """What a study needs of a GenerateSpec."""

    search = from_plain(
        {
            "name": "optuna",
            "description": "",
            "strategy": "optuna",
            "rounds": 4,
            "variants_per_round": 2,
            "variants": 4,
        },
        Search,
    )


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Study:
    """A grid of sixteen variants, of which one failed, and two searches that each found one of them."""
    subspace = Subspace(
        implementation="cpp",
        values={"BLOCK": (1, 2, 3, 4), "UNROLL": (1, 2, 4, 8)},
        default={"BLOCK": 1, "UNROLL": 1},
        constraints=(),
        constants={},
    )
    monkeypatch.setattr(grid_page, "space_of", lambda spec: Space(subspaces=(subspace,)))
    trials = tuple(
        trial(block, unroll, None if (block, unroll) == (2, 2) else 0.001 * block * unroll)
        for block in (1, 2, 3, 4)
        for unroll in (1, 2, 4, 8)
    )
    grid = Sweep(overrides=("search=grid",), trials=trials, keys={}, seconds=10.0)
    first, second = (each.variant.id for each in grid.measured[:2])
    searches = tuple(
        Sweep(
            overrides=("search=optuna", "search.variants=3", f"search.seed={seed}"),
            trials=tuple(each for each in trials if each.variant.id == found),
            keys={},
            seconds=3.0,
        )
        for seed, found in enumerate((first, second))
    )
    return Study(
        task=("kernel=toy",),
        grid=grid,
        searches=searches,
        reference=first,
        contenders={first: share(1, 1, 1), second: share(0.4, 0.5, 0.6)},
        shares={first: share(1, 1, 1), second: share(0.4, 0.5, 0.6)},
        space=Spec(),  # type: ignore[arg-type]
    )


def test_the_grid_becomes_a_recorded_space(study: Study) -> None:
    """Every variant with its time, a failure with its reason; searches on it find its best."""
    space = recorded(study)
    assert len(space.results) == 16
    assert [each.outcome for each in space.results].count(Outcome.COMPILE_ERROR) == 1
    found = {each.strategy: each for each in replays(study, 3) if each.share == 0.95}
    assert found["random"].searches == 3
    assert found["optuna"].reached == 3  # the default is the best one, and is proposed first
    assert found["optuna"].median == 1


@pytest.mark.slow
def test_what_was_measured_can_be_kept(study: Study, tmp_path: Path) -> None:
    """Written and read back it is the same, with a real task's space."""
    overrides = ("kernel=matmul", "workload=bert_base", "hardware=cpu", "search=optuna")
    plan = current_plan(overrides, root=ROOT, store=tmp_path)
    spec = read_record(spec_path(tmp_path, "generate", plan.tasks[0].row.generate), GenerateSpec)
    whole = msgspec.structs.replace(study, space=spec)
    (tmp_path / "kept.json").write_bytes(to_json(whole))
    assert read_record(tmp_path / "kept.json", Study) == whole


def test_the_page_says_what_was_found(study: Study) -> None:
    """One of two searches reached it, the chance of blind draws is beside it, replayed ones are named so."""
    replayed = [Replayed(strategy="optuna", share=0.95, searches=3, reached=1, median=float("inf"))]
    text = "\n".join(page(study, "python -m x", replayed))
    assert "**1 of 2 searches**" in text and "not reached" in text
    assert "1 of the 15 variants are that good" in text
    assert "3 random variants contain one with a probability of 20%" in text
    assert "| 0 | 1 | 1 | 3 s | BLOCK=1 UNROLL=1 | 100.0% | reached |" in text
    assert "| 50.0% (40.0% to 60.0%) | missed |" in text
    assert "| `optuna` | 95% | 1 of 3 | more than allowed |" in text
    assert "Nothing is measured, and" in " ".join(text.split())
