"""The derived bound accepts every rounding of a right result and nothing that is wrong by more."""

import math

import msgspec
import pytest
import torch

from pipeline.verify.oracle import tolerance
from pipeline.verify.oracle.tolerance import Precision, deviation, expect, unit_roundoff

FLOATS = ("float64", "float32", "float16", "bfloat16")


def precision(output: str = "float32", terms: float = 1.0, **changes: object) -> Precision:
    """Accumulated in float32."""
    return Precision(**({"output": output, "accumulate": "float32", "terms": terms} | changes))


@pytest.mark.parametrize("output", FLOATS)
def test_correct_rounding_passes(output: str) -> None:
    """The reference itself, rounded to the output type, is within the bound, small and large."""
    reference = torch.randn(10_000, dtype=torch.float64) * torch.logspace(-12, 4, 10_000, dtype=torch.float64)
    expected = expect(reference, reference, precision(output))
    assert deviation(reference.to(getattr(torch, output)), expected).share <= 1


@pytest.mark.parametrize(("output", "step"), [("float32", 64), ("float16", 3), ("bfloat16", 3)])
def test_some_units_in_the_last_place_fail(output: str, step: int) -> None:
    """Beyond the last rounding and that of the terms, a result is wrong."""
    reference = torch.full((100,), 1.0, dtype=torch.float64)
    expected = expect(reference, reference, precision(output, terms=8))
    eps = torch.finfo(getattr(torch, output)).eps
    wrong = reference.clone()
    wrong[37] += step * eps
    found = deviation(wrong.to(getattr(torch, output)), expected)
    assert not found.passed
    assert (found.wrong, found.where, found.total) == (1, (37,), 100)


def test_sums_in_float32_pass_and_in_float16_fail() -> None:
    """The bound holds for any order of summation in the accumulator's type, and for no smaller type."""
    values = torch.randn(200, 4096, generator=torch.Generator().manual_seed(1))
    expected = expect(values.double().sum(1), values.double().abs().sum(1), precision(terms=4096))
    assert deviation(values.sum(1), expected).share < 0.2
    assert deviation(values.flip(1).cumsum(1)[:, -1], expected).share < 0.2
    half = torch.zeros(200, dtype=torch.float16)
    for column in values.half().unbind(1):
        half += column
    assert not deviation(half.float(), expected).passed


def test_bound_follows_the_magnitudes() -> None:
    """Cancellation neither hides nor excuses an error: what entered the sum counts, not what came out."""
    reference, magnitude = torch.zeros(1, dtype=torch.float64), torch.full((1,), 1000.0, dtype=torch.float64)
    expected = expect(reference, magnitude, precision(terms=100))
    assert expected.bound.item() == pytest.approx(80 * 2**-24 * 1000, rel=1e-5)
    assert deviation(torch.tensor([0.004]), expected).passed
    assert not deviation(torch.tensor([0.006]), expected).passed


def test_terms_grow_like_the_square_root() -> None:
    """Few terms count each, many count 8 sqrt(n)."""
    one = torch.ones(1, dtype=torch.float64)
    bound = {n: expect(0 * one, one, precision(terms=n)).bound.item() / 2**-24 for n in (10, 64, 10_000)}
    assert bound == pytest.approx({10: 10, 64: 64, 10_000: 800}, rel=1e-5)


def test_widening_is_a_factor() -> None:
    """A documented factor widens the bound by just that."""
    one = torch.ones(1, dtype=torch.float64)
    narrow, wide = (expect(one, one, precision(factor=factor)).bound.item() for factor in (1.0, 4.0))
    assert wide == pytest.approx(4 * narrow)


@pytest.mark.parametrize("wrong", [0.0, 1.0, math.inf, -math.inf])
def test_nan_must_stay_nan(wrong: float) -> None:
    """Where the reference is NaN only NaN passes."""
    reference = torch.tensor([1.0, math.nan], dtype=torch.float64)
    expected = expect(reference, reference, precision())
    assert deviation(torch.tensor([1.0, math.nan]), expected).passed
    found = deviation(torch.tensor([1.0, wrong]), expected)
    assert found.share == math.inf
    assert found.where == (1,)


@pytest.mark.parametrize("wrong", [0.0, 3e38, math.nan, -math.inf])
def test_infinity_must_stay_infinite(wrong: float) -> None:
    """Where the reference is infinite only the same infinity passes."""
    reference = torch.tensor([1.0, math.inf], dtype=torch.float64)
    expected = expect(reference, reference, precision())
    assert deviation(torch.tensor([1.0, math.inf]), expected).passed
    assert not deviation(torch.tensor([1.0, wrong]), expected).passed


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_nothing_special_where_the_reference_is_finite(wrong: float) -> None:
    """NaN and infinity never pass for a number, alone or beside a special value."""
    for other in (1.0, math.nan):
        reference = torch.tensor([2.0, other], dtype=torch.float64)
        expected = expect(reference, reference, precision())
        assert not deviation(torch.tensor([wrong, other]), expected).passed


def test_overflow_of_the_output_type() -> None:
    """A reference beyond float16 must become infinite; near its largest number both are right."""
    reference = torch.tensor([1e6, -1e6, 65519.9, 60000.0], dtype=torch.float64)
    expected = expect(reference, reference, precision("float16"))
    assert deviation(reference.half(), expected).passed
    assert deviation(torch.tensor([math.inf, -math.inf, math.inf, 60000.0]).half(), expected).passed
    for wrong in ([65504.0, -math.inf, 65504.0, 6e4], [math.inf, math.inf, 65504.0, 6e4]):
        assert not deviation(torch.tensor(wrong).half(), expected).passed
    assert not deviation(torch.tensor([math.inf, -math.inf, 65504.0, math.inf]).half(), expected).passed


def test_magnitude_that_is_not_finite_widens_nothing() -> None:
    """An infinity among the terms does not excuse an error of a finite result."""
    reference = torch.ones(2, dtype=torch.float64)
    magnitude = torch.tensor([math.inf, math.nan], dtype=torch.float64)
    expected = expect(reference, magnitude, precision(terms=1000))
    assert not deviation(torch.tensor([1.0, 1.0 + 2**-22]), expected).passed
    assert deviation(torch.ones(2), expected).passed


def test_flushing_to_zero() -> None:
    """float32 may lose its subnormals, float16 only its smallest one."""
    tiny = torch.tensor([1e-39], dtype=torch.float64)
    assert deviation(torch.zeros(1), expect(tiny, tiny, precision())).passed
    small = torch.tensor([3e-5], dtype=torch.float64)
    assert not deviation(torch.zeros(1).half(), expect(small, small, precision("float16"))).passed


def test_integers_are_exact() -> None:
    """A difference of 1 is too much."""
    reference = torch.arange(5, dtype=torch.float64)
    expected = expect(reference, reference, precision("int32", factor=100.0))
    assert deviation(torch.arange(5, dtype=torch.int32), expected).share == 0
    assert not deviation(torch.tensor([0, 1, 2, 3, 5], dtype=torch.int32), expected).passed


def test_nothing_to_compare() -> None:
    """An output without elements has no error."""
    empty = torch.empty((0, 5), dtype=torch.float64)
    assert deviation(torch.empty(0, 5), expect(empty, empty, precision())).where is None


def test_unit_roundoffs() -> None:
    """Half the distance from 1 to the next number (IEEE 754; bfloat16 has 8 significant bits)."""
    found = {name: unit_roundoff(getattr(torch, name)) for name in FLOATS}
    assert found == {"float64": 2**-53, "float32": 2**-24, "float16": 2**-11, "bfloat16": 2**-8}


@pytest.mark.parametrize(("overflows", "right"), [(True, True), (False, False)])
def test_a_row_of_which_little_is_left(overflows: bool, right: bool) -> None:
    """Two elements that are off by the same factor say little of a row whose others left the type's range."""
    row = torch.linspace(3e4, 1e6 if overflows else 6e4, 40, dtype=torch.float64)[None]
    expected = msgspec.structs.replace(
        expect(
            row, row, Precision(terms=1e3, accumulate="float16", operands=0.0, output="float16", factor=1.0)
        ),
        row_limit=torch.full((1,), 1e-3, dtype=torch.float64),
    )
    assert deviation((row * 1.004).half(), expected).passed == right


def test_large_outputs_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same verdict, error and place."""
    reference = torch.randn(5, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    reference[0, 3], reference[4, 1] = math.inf, math.nan
    precision = Precision(output="float32", accumulate="float32", terms=1)
    expected = expect(reference, reference.abs(), precision)
    for changes in ({}, {(3, 2): 9.0}, {(4, 8): math.nan}, {(4, 1): 0.0, (0, 0): 8.0}):
        got = reference.float()
        for place, value in changes.items():
            got[place] = value
        whole = deviation(got, expected)
        with monkeypatch.context() as patch:
            patch.setattr(tolerance, "AT_ONCE", 7)
            parts = deviation(got, expected)
        assert whole.passed == (not changes)
        assert (parts.share, parts.error, parts.wrong, parts.total) == (
            whole.share,
            whole.error,
            whole.wrong,
            whole.total,
        )
        assert parts.where == whole.where or parts.passed
