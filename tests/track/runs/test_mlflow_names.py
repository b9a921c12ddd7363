"""Names and values as MLflow takes them."""

import math

import pytest

from pipeline.track.runs import mlflow_names


def test_a_plain_name_stays() -> None:
    """What MLflow takes is not changed."""
    assert mlflow_names.key("tunable/BLOCK_M") == "tunable/BLOCK_M"


def test_characters_that_mlflow_refuses_are_replaced() -> None:
    """%, ( and [ cannot stand in a metric's name."""
    assert not set(mlflow_names.key("share(%)[x]")) & set("%()[]")


def test_two_names_never_become_one() -> None:
    """A replaced character leaves a mark."""
    found = {mlflow_names.key(name) for name in ("a(b", "a[b", "a_b", "a%b", "x" * 260, "x" * 261)}
    assert len(found) == 6


@pytest.mark.parametrize("name", ["x" * 300, "%" * 300, "..", "/a/"])
def test_every_name_is_one_that_mlflow_takes(name: str) -> None:
    """MLflow's own check accepts it."""
    from mlflow.utils.validation import _validate_metric_name

    _validate_metric_name(mlflow_names.key(name), "key")
    assert len(mlflow_names.key(name)) <= mlflow_names.NAME_LENGTH


def test_a_long_value_is_cut_with_a_mark() -> None:
    """MLflow would cut it silently."""
    value = mlflow_names.param("x" * 10_000)
    assert len(value) == mlflow_names.PARAM_LENGTH
    assert value.endswith(mlflow_names.CUT)


def test_a_value_that_fits_is_whole() -> None:
    """Up to the last character."""
    assert mlflow_names.tag("x" * mlflow_names.TAG_LENGTH) == "x" * mlflow_names.TAG_LENGTH


def test_bool_is_written_as_in_yaml() -> None:
    """The configs say true, so does the UI."""
    assert mlflow_names.param(True) == "true"


@pytest.mark.parametrize(
    ("value", "number"), [(True, 1.0), (16, 16.0), (0.5, 0.5), ("mn", None), (None, None)]
)
def test_only_numbers_are_metrics(value: object, number: float | None) -> None:
    """Text has no place on an axis."""
    assert mlflow_names.number(value) == number


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_absent(value: float) -> None:
    """MLflow would store infinity as 1.8e308: a number that nobody measured."""
    assert mlflow_names.number(value) is None
