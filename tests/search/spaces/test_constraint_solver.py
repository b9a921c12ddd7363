"""Valid points are counted, numbered and drawn right: against trial, another solver, and chance."""

import collections
import itertools
import math
import random

import constraint
import msgspec
import numpy as np
import pytest

from pipeline.records.configuration.kernel import Constraint, TunableValue
from pipeline.records.errors import FormulaError
from pipeline.records.formula import evaluate, names_in
from pipeline.search.spaces import constraint_solver, search_space
from pipeline.search.spaces.constraint_solver import Solver
from pipeline.search.spaces.search_space import Space, Subspace

VALUES: dict[str, tuple[TunableValue, ...]] = {
    "a": (1, 2, 4, 8),
    "b": (1, 2, 3, 4, 5),
    "c": (False, True),
    "d": ("x", "y"),
    "e": (1, 2, 3),
}
RULES = ("a * b <= limit", "c or a > 1", "d == 'x' or b % 2 == 1", "e <= b")
CONSTANTS: dict[str, TunableValue] = {"limit": 12}


def made(rules: tuple[str, ...] = RULES, **values: tuple[TunableValue, ...]) -> Subspace:
    """A space with these rules, and values in place of those above."""
    changed = {**VALUES, **values}
    return Subspace(
        implementation="toy",
        values=changed,
        default={},
        constraints=tuple(Constraint(rule=rule, reason="") for rule in rules),
        constants=CONSTANTS,
    )


def by_trial(space: Subspace) -> list[dict[str, TunableValue]]:
    """The points of the product that hold, one by one."""
    points = (
        dict(zip(space.values, each, strict=True)) for each in itertools.product(*space.values.values())
    )
    return [
        point
        for point in points
        if all(evaluate(rule.rule, {**CONSTANTS, **point}) for rule in space.constraints)
    ]


def test_points_of_random_spaces_are_those_that_trial_finds() -> None:
    """Random choices of rules, whose tables overlap in every way, on values in random order."""
    generator = random.Random(1)
    pool = (
        *RULES,
        "a + b + e < 9",
        "not c",
        "a % b != 1 or c",
        "limit > 3",
        "e == 2 or a == b or c",
        "a > 99",
    )
    for _ in range(40):
        rules = tuple(generator.sample(pool, generator.randint(0, 5)))
        values = {name: tuple(generator.sample(each, len(each))) for name, each in VALUES.items()}
        space = made(rules, **values)
        expected = by_trial(space)
        assert space.points() == expected, rules
        assert (space.count, space.has_point()) == (len(expected), bool(expected))
        left_out = sum(each.count or 0 for each in space.pruned())
        assert space.size - left_out == len(expected)


def test_wide_rules_give_the_same_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules whose tables would be too large are checked on each point, with the same result."""
    expected, pruned = by_trial(made()), [None] * len(RULES)
    monkeypatch.setattr(constraint_solver, "CELLS", 10)
    space = made()
    assert set(space.solver.wide) == {"a * b <= limit", "e <= b"}
    assert space.points() == expected
    assert (space.count, space.has_point()) == (len(expected), True)
    assert all(space.contains(point) for point in expected)
    assert sum(space.contains(each) for each in by_trial(made(()))) == len(expected)
    assert [each.count for each in space.pruned()] == pruned
    assert len(Space(subspaces=(space,)).sample(random.Random(0), 10**6)) == len(expected)


def test_another_solver_counts_the_same() -> None:
    """python-constraint2 on the same rules."""
    problem = constraint.Problem()
    for name, values in VALUES.items():
        problem.addVariable(name, list(values))
    for rule in RULES:
        named = sorted(names_in(rule) & VALUES.keys())
        problem.addConstraint(
            constraint.FunctionConstraint(
                lambda *each, rule=rule, named=named: evaluate(
                    rule, {**CONSTANTS, **dict(zip(named, each, strict=True))}
                )
            ),
            named,
        )
    assert made().count == len(problem.getSolutions())


def test_a_space_beyond_64_bits_is_counted_and_drawn() -> None:
    """1e40 points: the count is exact, the points are valid and different, no time is needed."""
    names = [f"t{number}" for number in range(40)]
    space = Subspace(
        implementation="large",
        values={name: tuple(range(10)) for name in names},
        default={},
        constraints=tuple(
            Constraint(rule=f"{one} <= {other}", reason="") for one, other in itertools.pairwise(names)
        ),
        constants={},
    )
    assert space.size == 10**40
    assert space.count == math.comb(49, 9)  # rising sequences of 40 digits
    drawn = Space(subspaces=(space,)).sample(random.Random(3), 200)
    assert len({tuple(point.values()) for _, point in drawn}) == 200
    assert all(list(point.values()) == sorted(point.values()) for _, point in drawn)
    free = Space(subspaces=(made((), **{f"x{number}": tuple(range(100)) for number in range(20)}),))
    assert free.count == 100**20 * made(()).size
    assert len(free.sample(random.Random(3), 100)) == 100


def test_numbers_and_points_are_one_to_one() -> None:
    """Every number below the count is a different valid point."""
    solutions = made().solver.solutions
    rows = solutions.rows(range(solutions.count))
    assert len(np.unique(rows, axis=0)) == solutions.count == len(by_trial(made()))


@pytest.mark.slow
@pytest.mark.parametrize("cells", [constraint_solver.CELLS, 10])
def test_every_valid_point_is_drawn_equally_often(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """Chi-square of 4,000 single draws over two implementations; with wide rules too."""
    from scipy import stats  # takes seconds, which every worker would spend to collect this file

    monkeypatch.setattr(constraint_solver, "CELLS", cells)
    monkeypatch.setattr(search_space, "ALL", 0)  # draw, although it is small enough to shuffle
    other = msgspec.structs.replace(made(("e == 1", "a < b")), implementation="other")
    space = Space(subspaces=(made(), other))
    generator = random.Random(5)
    draws = 4_000
    counts: collections.Counter[str] = collections.Counter()
    while counts.total() < draws:
        # Small samples: without replacement, a large one would be even by construction.
        counts.update(repr(point) for point in space.sample(generator, 1))
    assert len(counts) == space.count
    assert stats.chisquare(list(counts.values())).pvalue > 0.001


def test_a_sample_is_different_valid_points_and_repeatable() -> None:
    """Without replacement; all points where more are asked for; the generator decides."""
    space = Space(subspaces=(made(),))
    sample = space.sample(random.Random(1), 30)
    assert len({repr(point) for point in sample}) == 30
    assert all(space.contains(point) for point in sample)
    assert sample == space.sample(random.Random(1), 30) != space.sample(random.Random(2), 30)
    assert sorted(map(repr, space.sample(random.Random(1), 10**6))) == sorted(map(repr, space.points()))
    assert space.sample(random.Random(1), 0) == []


def test_a_wide_rule_that_hardly_holds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing does not go on for ever."""
    monkeypatch.setattr(constraint_solver, "CELLS", 10)
    monkeypatch.setattr(search_space, "DRAWS", 1000)
    monkeypatch.setattr(search_space, "ALL", 0)
    space = made(("a * b > 99",), a=tuple(range(1000)))
    rare = Space(subspaces=(made(("x * y == 998001",), x=tuple(range(1000)), y=tuple(range(1000))),))
    with pytest.raises(
        FormulaError, match="`x \\* y == 998001`: too rare to sample: 0 of 10[0-9]+ points drawn"
    ):
        rare.sample(random.Random(0), 5)
    assert len(Space(subspaces=(space,)).sample(random.Random(0), 5)) == 5


def test_contains_needs_every_tunable_with_a_declared_value() -> None:
    """A value that is equal but of another kind is another value; a missing tunable is no point."""
    space = made()
    point = {"a": 2, "b": 3, "c": True, "d": "x", "e": 1}
    assert space.contains(point)
    assert not space.contains({**point, "c": 1})
    assert not space.contains({**point, "a": 16})
    assert not space.contains({**point, "e": 3, "b": 2})
    assert not space.contains({name: value for name, value in point.items() if name != "e"})
    assert not space.contains({**point, "z": 1})


@pytest.mark.parametrize("reach", [None, 1, 2])
def test_neighbors_differ_in_one_tunable(reach: int | None) -> None:
    """All valid points at one step, and no other."""
    space = made()
    point = {"a": 2, "b": 3, "c": True, "d": "x", "e": 2}
    expected = [
        other
        for other in by_trial(space)
        if sum(other[name] != point[name] for name in point) == 1
        and all(
            reach is None or abs(values.index(other[name]) - values.index(point[name])) <= reach
            for name, values in VALUES.items()
        )
    ]
    found = space.neighbors(point, reach)
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert space.neighbors({**point, "a": 77}) == []
    both = Space(subspaces=(space,))
    assert both.neighbors(("toy", point), reach) == [("toy", each) for each in found]
    assert both.neighbors(("other", point)) == []


def test_a_rule_over_many_tunables_of_one_value() -> None:
    """They are no axes of its table: numpy has 64 at most."""
    values: dict[str, tuple[TunableValue, ...]] = {f"t{number}": (1,) for number in range(100)}
    rule = " + ".join(values) + " + x == 102"
    solver = Solver({**values, "x": (1, 2, 3)}, [rule], {})
    assert (solver.count, solver.wide) == (1, ())


def test_a_tunable_without_values_leaves_nothing() -> None:
    """No value, no point."""
    assert made((), a=()).points() == []
    assert made(("a > 1",), a=()).count == 0


def test_a_rule_may_rely_on_those_before_it() -> None:
    """What an earlier rule excludes is not evaluated; in the other order it is an error."""
    values = {"a": (0, 1, 2, 3)}
    assert Solver(values, ["a > 0", "6 % a == 0"], {}).count == 3
    with pytest.raises(FormulaError, match="`6 % a == 0`: cannot be evaluated: division by zero"):
        Solver(values, ["6 % a == 0", "a > 0"], {})
