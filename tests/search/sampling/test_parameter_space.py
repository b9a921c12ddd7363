"""Parameters, points and what was not seen."""

import random

import pytest

from pipeline.search.sampling.parameter_space import Choice, Interval, ParameterSpace, Steps

BLOCK = Choice(name="BLOCK_M", values=(16, 32, 64), texts=("16", "32", "64"))
WARPS = Steps(name="warps", first=1, count=8)
TENTHS = Steps(name="share", first=0.1, step=0.1, count=9)
RATE = Interval(name="rate", low=1e-4, high=1.0, log=True)


def test_point_is_what_overrides_say() -> None:
    """Values become texts in the order of the space, with all digits that they need."""
    space = ParameterSpace(parameters=(BLOCK, WARPS, TENTHS, RATE))
    values = {"rate": 0.1 + 0.2, "share": 0.1 + 0.2, "warps": 3, "BLOCK_M": 32}
    assert space.point(values) == ("BLOCK_M=32", "warps=3", "share=0.3", "rate=0.30000000000000004")


def test_steps_are_exact_decimals() -> None:
    """The third tenth is 0.3, as a user would write it, and Optuna's nearest value finds it."""
    assert [TENTHS.at(index) for index in range(9)] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert TENTHS.text(0.30000000000000004) == "0.3"
    assert WARPS.text(8) == "8"


@pytest.mark.parametrize("parameter", [BLOCK, WARPS, TENTHS, RATE], ids=lambda parameter: parameter.name)
def test_draws_belong_to_the_distribution(parameter) -> None:
    """What is drawn at random is what Optuna's distribution holds."""
    pytest.importorskip("optuna", reason="not installed: python -m pip install -e '.[optuna]'")
    distribution = parameter.distribution()
    generator = random.Random(0)
    for _ in range(50):
        value = parameter.draw(generator)
        assert distribution.to_external_repr(distribution.to_internal_repr(value)) == value


def test_size() -> None:
    """A product of what can be counted; an interval with one number has one, others none that is known."""
    one = Interval(name="one", low=2.0, high=2.0)
    assert ParameterSpace(parameters=(BLOCK, WARPS, TENTHS, one)).size == 3 * 8 * 9
    assert ParameterSpace(parameters=(BLOCK, RATE)).size is None


def test_unseen_finds_the_last_point() -> None:
    """Of 216 points, 215 of them seen, the last one is found; of all 216 none."""
    space = ParameterSpace(parameters=(BLOCK, WARPS, TENTHS))
    everything = {space.point(space.nth(index)) for index in range(216)}
    assert len(everything) == 216
    missing = ("BLOCK_M=64", "warps=5", "share=0.7")
    found = space.unseen(everything - {missing}, random.Random(1))
    assert found is not None
    assert space.point(found) == missing
    assert space.unseen(everything, random.Random(1)) is None


def test_unseen_in_an_uncountable_space() -> None:
    """A random point inside."""
    space = ParameterSpace(parameters=(RATE,))
    values = space.unseen(set(), random.Random(0))
    assert values is not None
    assert 1e-4 <= values["rate"] <= 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Choice(name="a", values=(), texts=()), "no value to choose from"),
        (lambda: Choice(name="a", values=(1, True), texts=("1", "true")), "cannot be told apart: 1, true"),
        (lambda: Steps(name="a", first=1, count=0), "no number in the range"),
        (lambda: Steps(name="a", first=1, count=2, step=0), "a step above 0"),
        (lambda: Steps(name="a", first=0, count=2, log=True), "log needs numbers of 1 or more, got 0"),
        (lambda: Steps(name="a", first=2, step=2, count=2, log=True), "in steps of 1"),
        (lambda: Interval(name="a", low=2.0, high=1.0), "the lower one first, got 2.0 and 1.0"),
        (lambda: Interval(name="a", low=0.0, high=float("inf")), "expected finite ends"),
        (lambda: Interval(name="a", low=0.0, high=1.0, log=True), "log needs ends above 0, got 0.0"),
    ],
)
def test_illegal_parameters(make, message: str) -> None:
    """A parameter without a meaning cannot be made."""
    with pytest.raises(ValueError, match=message):
        make()
