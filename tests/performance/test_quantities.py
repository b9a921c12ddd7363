import pytest

from pipeline.performance import quantities
from pipeline.records.results.profiled import ConfidenceInterval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.000"),
        (0.49812, "0.498"),
        (0.9999, "1.00"),
        (1.934, "1.93"),
        (12.34, "12.3"),
        (99.96, "100"),
        (1234, "1234"),
        (2e-5, "2.00e-05"),
    ],
)
def test_three_significant_digits(value, text):
    """Ratios are written alike everywhere, at the edges of rounding too."""
    assert quantities.digits(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.5, "2.50 s"), (0.0107, "10.7 ms"), (9.996e-4, "1.00 ms"), (3.346e-4, "335 µs"), (5e-8, "50.0 ns")],
)
def test_durations(value, text):
    """A duration has the unit in which it is at least 1."""
    assert quantities.seconds(value) == text


def test_rates_and_shares():
    """SI prefixes for rates, per cent for shares."""
    assert quantities.rate(2.1e10, "B/s") == "21.0 GB/s"
    assert quantities.rate(9.89e14, "FLOP/s") == "989 TFLOP/s"
    assert (quantities.share(0.7834), quantities.share(0.0123)) == ("78 %", "1.2 %")


def test_interval_of_a_duration():
    """The unit stands once where both ends share it."""
    same = ConfidenceInterval(value=3.35e-4, low=3.33e-4, high=3.37e-4, confidence=0.95)
    other = ConfidenceInterval(value=1e-3, low=9.9e-4, high=1.01e-3, confidence=0.95)
    assert (quantities.span(same), quantities.span(other)) == ("333 – 337 µs", "990 µs – 1.01 ms")


@pytest.mark.parametrize(
    ("count", "outcome", "text"),
    [
        (1, "compile_error", "1 compile error"),
        (1200, "compile_error", "1,200 compile errors"),
        (2, "device_unavailable", "2 device unavailable"),
    ],
)
def test_counted_outcomes(count, outcome, text):
    """Words without underscores, and nouns in the right number."""
    assert quantities.counted_outcome(count, outcome) == text
