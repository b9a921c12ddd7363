"""Every strategy conforms: valid points only, none twice over all rounds, within budget, repeatable."""

import inspect
from typing import get_args

import msgspec
import pytest

from pipeline.records.configuration.kernel import Constraint
from pipeline.records.configuration.search_settings import Search
from pipeline.records.errors import ConfigError
from pipeline.records.outcome import Outcome
from pipeline.records.results.profiled import ConfidenceInterval
from pipeline.search import strategy_registry
from pipeline.search.spaces.search_space import Point, Space
from pipeline.search.strategies.optuna import SamplerName
from pipeline.search.strategies.successive_halving import SuccessiveHalving
from pipeline.search.strategy import Budget, identity, shorter
from tests.search.synthetic import CPP, SIZE, SPACE, WIDE, Judge, easy, fails, play, trial, valley
from tests.selection import slow_unless

LADDER = Search(
    name="",
    description="",
    strategy="successive_halving",
    rounds=4,
    settings={"successive_halving": {"shrink": {"rows": 4}}},
)
LIE = ConfidenceInterval(value=1e-9, low=1e-9, high=1e-9, confidence=0.95)
REPEATING = ("successive_halving",)
"""Strategies that have a point measured again, longer."""
PARTIAL = ("ablation",)
"""Strategies whose last round has an end of its own."""


WRITING = tuple(name for name in strategy_registry.strategy_names() if strategy_registry.strategy(name).write)
TUNING = (
    *(name for name in strategy_registry.strategy_names() if name not in (*WRITING, "optuna")),
    *(f"optuna/{sampler}" for sampler in get_args(SamplerName)),
)
"""Those that write sources propose something else, and have tests of their own."""


GP = "optuna/gp"  # fits a Gaussian process for each point: seconds a test


@pytest.fixture(params=TUNING)
def name(request: pytest.FixtureRequest) -> str:
    """Each member of the registry."""
    return str(request.param)


def budget(name: str, *, rounds: int, variants: int | None, seed: int = 3) -> Budget:
    """A budget with the strategy's own defaults; of `optuna/gp` with this sampler."""
    strategy, _, sampler = name.partition("/")
    settings = {strategy: {"sampler": sampler}} if sampler else {}
    search = Search(
        name="",
        description="",
        strategy=strategy,
        rounds=rounds,
        variants_per_round=variants,
        seed=seed,
        settings=settings,
    )
    return Budget(
        round=0, rounds=rounds, variants=variants, variants_per_round=variants, seed=seed, search=search
    )


def check(name: str, space: Space, judge: Judge, given: Budget) -> list[Point]:
    """What holds for every search; returns all its points."""
    proposed = play(name, space, judge, given)
    points = [point for each in proposed for point in each]
    valid = {identity(point) for point in space.points()}
    assert {identity(point) for point in points} <= valid
    assert all(len(each) <= (given.variants or len(valid)) for each in proposed)
    for each in proposed:
        assert len({identity(point) for point in each}) == len(each), "twice in one round"
    if name not in REPEATING:
        assert len({identity(point) for point in points}) == len(points), "twice over the rounds"
    return points


@pytest.fixture(params=slow_unless(lambda each: each != GP, TUNING))
def quick(request: pytest.FixtureRequest) -> str:
    """Each that proposes quickly."""
    return str(request.param)


def test_signature(name: str) -> None:
    """One function with the interface's arguments."""
    assert list(inspect.signature(strategy_registry.proposer(name.partition("/")[0])).parameters) == [
        "space",
        "history",
        "budget",
    ]


def test_no_budget_is_the_whole_space(name: str) -> None:
    """Without a limit every valid point is proposed once; an ablation has its own."""
    points = check(name, SPACE, easy, budget(name, rounds=1, variants=None))
    assert len(points) == SIZE or name in PARTIAL


@pytest.mark.parametrize(("count", "rounds"), [(1, 3), (5, 2), (7, 3), (30, 2), (100, 2)])
def test_rounds_are_disjoint_and_within_budget(quick: str, count: int, rounds: int) -> None:
    """No point twice, no more than allowed, all valid, and no round is left empty while points are left."""
    points = check(quick, SPACE, easy, budget(quick, rounds=rounds, variants=count))
    if quick not in (*REPEATING, *PARTIAL):
        assert len(points) == min(count * rounds, SIZE)


def test_the_defaults_come_first(name: str) -> None:
    """The default of each implementation shows what tuning gained."""
    first, *_ = play(name, SPACE, easy, budget(name, rounds=3, variants=6))
    assert all(identity(point) in {identity(each) for each in first} for point in SPACE.defaults())


def test_repeatable(quick: str) -> None:
    """The same arguments give the same points in the same order."""
    given = budget(quick, rounds=3, variants=6)
    assert play(quick, WIDE, valley, given) == play(quick, WIDE, valley, given)


def test_only_failures(name: str) -> None:
    """A history in which nothing ever passed is a history like any other."""
    points = check(name, SPACE, fails, budget(name, rounds=3, variants=5))
    assert points


def test_some_failures(quick: str) -> None:
    """Points that crash are in the history, and not proposed again."""
    check(quick, WIDE, valley, budget(quick, rounds=4, variants=6))


def test_nothing_could_be_measured(name: str) -> None:
    """The device is not here: all is proposed as if nothing were known."""
    check(name, SPACE, lambda _: Outcome.DEVICE_UNAVAILABLE, budget(name, rounds=2, variants=5))


def test_one_point(name: str) -> None:
    """A space of one point has one variant, then nothing."""
    single = msgspec.structs.replace(
        CPP, values={"A": (2,), "B": (False,), "C": ("y",)}, default={"A": 2, "B": False, "C": "y"}
    )
    points = check(name, Space(subspaces=(single,)), easy, budget(name, rounds=2, variants=4))
    assert [identity(point) for point in points][:1] == [identity(("cpp", {"A": 2, "B": False, "C": "y"}))]
    assert len(points) == (2 if name in REPEATING else 1)


def test_no_point(name: str) -> None:
    """A space that the rules leave empty has no variant."""
    closed = msgspec.structs.replace(CPP, constraints=(Constraint(rule="A > 9", reason=""),))
    assert check(name, Space(subspaces=(closed,)), easy, budget(name, rounds=2, variants=4)) == []


def test_an_invalid_default_is_not_proposed(name: str) -> None:
    """A default that a constraint excludes on this problem is left out."""
    closed = msgspec.structs.replace(CPP, constraints=(Constraint(rule="A > 2", reason=""),))
    points = check(name, Space(subspaces=(closed,)), easy, budget(name, rounds=1, variants=3))
    assert len(points) == 3 or name in PARTIAL
    assert all(tunables["A"] in (3, 4) for _, tunables in points)


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner",
    slow_unless(
        ("optuna/tpe", "surrogate").__contains__,
        ["optuna/tpe", "optuna/nsgaii", "evolution", "basin_hopping", "surrogate", "transfer"],
    ),
)
def test_learning_helps(learner: str) -> None:
    """Over some seeds a strategy that learns ends nearer to the best point than random search does."""
    best = {
        each: sorted(
            min(
                seconds
                for points in play(each, WIDE, valley, budget(each, rounds=8, variants=8, seed=seed))
                for point in points
                if isinstance(seconds := valley(point), float)
            )
            for seed in range(5)
        )[2]
        for each in (learner, "random")
    }
    assert best[learner] < best["random"]


def test_the_seed_matters() -> None:
    """Another seed is another sample."""
    one, other = (
        play("random", SPACE, easy, budget("random", rounds=1, variants=10, seed=s)) for s in (1, 2)
    )
    assert one != other


def test_no_implementation_is_forgotten() -> None:
    """A model has a study for each implementation; the one that is ahead gets half, no other one nothing."""
    proposed = play("optuna", SPACE, easy, budget("optuna", rounds=4, variants=8))
    last = [implementation for implementation, _ in proposed[-1]]
    assert last.count("cpp") == last.count("other") == 4


def test_halving_measures_survivors_longer() -> None:
    """Nine briefly, the best three of them longer, the best one fully; what was brief is no result."""
    given = budget("successive_halving", rounds=3, variants=9)
    first, second, third = play("successive_halving", WIDE, valley, given)
    assert (len(first), len(second), len(third)) == (9, 3, 1)
    measured = [point for point in first if isinstance(valley(point), float)]
    assert second == sorted(measured, key=valley)[:3]
    assert third == second[:1]
    assert given.search is not None
    assert [each.share for each in strategy_registry.fidelities(given.search)] == [1 / 9, 1 / 3, 1.0]
    assert trial(first[0], valley, 0, 1 / 9).seconds is None


def test_halving_on_smaller_shapes_compares_alike_with_alike() -> None:
    """A new bracket learns from first rungs alone, which have the same shape. It says what it does."""
    given = budget("successive_halving", rounds=6, variants=9)
    assert given.search is not None
    ladder = {"successive_halving": {"shrink": {"M": 4}, "sampler": "evolution"}}
    search = msgspec.structs.replace(given.search, settings=ladder)
    given = msgspec.structs.replace(given, search=search)
    history = [
        trial(point, easy, number, share)
        for number, share in ((0, 1 / 9), (1, 1 / 3), (2, 1.0))
        for point in SPACE.points()[: 9 // 3**number]
    ]
    lies = [
        msgspec.structs.replace(each, screened=None if each.screened is None else LIE)
        if each.round == 1
        else each
        for each in history
    ]
    third = msgspec.structs.replace(given, round=3)
    propose = strategy_registry.proposer("successive_halving")
    assert propose(SPACE, history, third) == propose(SPACE, lies, third)
    say = strategy_registry.strategy("successive_halving").remarks
    assert say is not None
    assert say([], third) == (
        "round 3 measures on a shape that is shorter than the workload's (M up to 16 times, not below 64): "
        "it only chooses what the next round measures",
    )
    assert say([], msgspec.structs.replace(given, round=5)) == ()


@pytest.mark.parametrize(
    ("size", "times", "expected"),
    [
        (4096, 4, 1024),
        (4097, 4, 1025),
        (4096, 64, 64),
        (4096, 1000, 64),
        (40, 4, 40),
        (100, 1, 100),
        (96, 4, 64),
    ],
)
def test_a_dimension_becomes_shorter(size: int, times: int, expected: int) -> None:
    """A multiple of 64 stays one, what is odd may be odd, and nothing falls below 64 or grows."""
    assert shorter(size, times) == expected


def test_the_shape_of_a_round() -> None:
    """Each rung is shorter than the next; the last one, and a search without the setting, have their own."""
    shapes = strategy_registry.shapes(LADDER, {"rows": 4096, "cols": 2048})
    assert [each["rows"] for each in shapes] == [256, 1024, 4096, 256]
    assert {each["cols"] for each in shapes} == {2048}
    assert strategy_registry.shapes(msgspec.structs.replace(LADDER, settings={}), {"rows": 4096}) == ()
    assert strategy_registry.shapes(msgspec.structs.replace(LADDER, strategy="random"), {"rows": 4096}) == ()
    with pytest.raises(ValueError, match="shrink.rows: expected at least 2, got 1"):
        SuccessiveHalving(shrink={"rows": 1})


def test_several_objectives_say_what_it_goes_without() -> None:
    """Nothing was measured of energy here: it says so, and searches by the rest."""
    say = strategy_registry.strategy("optuna").remarks
    assert say is not None
    history = [trial(point, easy, 0) for point in SPACE.points()[:5]]
    assert say(history, budget("optuna/nsgaii", rounds=2, variants=5)) == (
        "nsgaii: nothing was measured of joules; it searches by seconds, error",
    )
    assert say([], budget("optuna/nsgaii", rounds=2, variants=5)) == ()


@pytest.mark.parametrize("member", strategy_registry.strategy_names())
def test_declarations(member: str) -> None:
    """A strategy tunes or writes, not both; one that may be wrapped works with its defaults."""
    declared = strategy_registry.strategy(member)
    assert (declared.propose is None) != (declared.write is None)
    assert declared.description.endswith(".")
    if declared.may_be_wrapped:
        assert declared.wraps is None and declared.propose is not None
        assert declared.settings is None or declared.settings()


def test_unknown_strategy() -> None:
    """The error lists the known ones."""
    with pytest.raises(ConfigError, match="strategy: expected one of ablation, .*, got 'gird'"):
        strategy_registry.strategy("gird")


def test_an_ablation_switches_one_technique_off_at_a_time() -> None:
    """From the default in one round: its techniques off, as declared; from the best after a search."""
    techniques = {"B": ("vectorization", False), "A": ("unrolling", 1)}
    space = Space(
        subspaces=(
            msgspec.structs.replace(
                CPP, default={"A": 3, "B": True, "C": "x"}, techniques=techniques, constraints=()
            ),
        )
    )
    (points,) = play("ablation", space, easy, budget("ablation", rounds=1, variants=20))
    assert [tunables for _, tunables in points] == [
        {"A": 3, "B": True, "C": "x"},
        {"A": 1, "B": True, "C": "x"},
        {"A": 3, "B": False, "C": "x"},
    ]
    searched, last = play("ablation", space, easy, budget("ablation", rounds=2, variants=20))
    _, best = min(searched, key=easy)
    assert all(sum(tunables[name] != best[name] for name in best) == 1 for _, tunables in last)


def test_a_transfer_begins_with_the_winners() -> None:
    """Winners come after the default; a value that is not here gives way to the nearest."""
    given = msgspec.structs.replace(
        budget("transfer", rounds=2, variants=4),
        starts=(("cpp", {"X": 30, "Y": 8, "Z": 4, "V": True, "ORDER": "tiled"}), ("triton", {"X": 1})),
    )
    first, _ = play("transfer", WIDE, valley, given)
    assert first[1] == ("cpp", {"X": 32, "Y": 8, "Z": 4, "V": True, "ORDER": "tiled"})
    assert len(first) == 4
