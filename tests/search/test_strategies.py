"""Every strategy conforms: valid points only, none twice over all rounds, within budget, repeatable."""

import inspect

import msgspec
import pytest

from pipeline.errors import ConfigError
from pipeline.records.kernel import Constraint
from pipeline.search import registry
from pipeline.search.space import Point, Space, Subspace
from pipeline.search.strategy import Budget

CPP = Subspace(
    implementation="cpp",
    values={"A": (1, 2, 3, 4), "B": (False, True), "C": ("x", "y", "z")},
    default={"A": 2, "B": False, "C": "y"},
    constraints=(Constraint(rule="A > 1 or not B", reason=""),),
    constants={},
)
OTHER = msgspec.structs.replace(CPP, implementation="other", constraints=())
SPACE = Space(subspaces=(CPP, OTHER))
SIZE = 21 + 24
WHOLE = Budget(round=0, rounds=1, variants=None, seed=0)


def rounds(name: str, budget: Budget) -> list[list[Point]]:
    """All rounds of a search."""
    return [
        registry.strategy(name)(SPACE, [], msgspec.structs.replace(budget, round=number))
        for number in range(budget.rounds)
    ]


@pytest.fixture(params=registry.NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """Each member of the registry."""
    return str(request.param)


def test_signature(name: str) -> None:
    """One function with the interface's arguments."""
    assert list(inspect.signature(registry.strategy(name)).parameters) == ["space", "history", "budget"]


def test_no_budget_is_the_whole_space(name: str) -> None:
    """Without a limit every valid point is proposed once."""
    (points,) = rounds(name, WHOLE)
    assert len(points) == SIZE
    assert all(point in points for point in SPACE.points())


@pytest.mark.parametrize(("count", "number"), [(1, 3), (5, 2), (7, 3), (30, 2), (100, 2)])
def test_rounds_are_disjoint_and_within_budget(name: str, count: int, number: int) -> None:
    """No point twice, no more than allowed, all valid, defaults first."""
    proposed = rounds(name, Budget(round=0, rounds=number, variants=count, seed=3))
    points = [point for each in proposed for point in each]
    assert max(len(each) for each in proposed) <= count
    assert len(points) == min(count * number, SIZE)
    assert all(points.count(point) == 1 for point in points)
    assert all(point in SPACE.points() for point in points)
    assert all(point in points for point in SPACE.defaults()[: count * number])


def test_repeatable(name: str) -> None:
    """The same arguments give the same points in the same order."""
    budget = Budget(round=0, rounds=2, variants=4, seed=1)
    assert rounds(name, budget) == rounds(name, budget)


def test_an_invalid_default_is_not_proposed(name: str) -> None:
    """A default that a constraint excludes on this problem is left out."""
    closed = msgspec.structs.replace(CPP, constraints=(Constraint(rule="A > 2", reason=""),))
    points = registry.strategy(name)(
        Space(subspaces=(closed,)), [], msgspec.structs.replace(WHOLE, variants=3)
    )
    assert len(points) == 3
    assert all(tunables["A"] in (3, 4) for _, tunables in points)


def test_the_seed_matters_to_random_search() -> None:
    """Another seed is another sample."""
    budget = Budget(round=0, rounds=1, variants=10, seed=1)
    assert rounds("random", budget) != rounds("random", msgspec.structs.replace(budget, seed=2))


def test_unknown_strategy() -> None:
    """The error lists the known ones."""
    with pytest.raises(ConfigError, match="search: got 'gird', expected one of grid, random"):
        registry.strategy("gird")
