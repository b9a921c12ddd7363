"""How numbers are written for people: values in base units in, short texts with SI prefixes out."""

from pipeline.records.results.profiled import ConfidenceInterval, Verdict

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))

BASELINES = {"eager": "eager PyTorch", "compile": "torch.compile"}


def baseline(name: str) -> str:
    """What a baseline is called for people."""
    return BASELINES.get(name, name)


def digits(value: float) -> str:
    """Three significant digits, without an exponent between 0.001 and 1000."""
    if value != 0 and abs(value) < 0.001:
        return f"{value:.2e}"
    decimals = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2 if abs(value) >= 0.9995 else 3
    return f"{value:.{decimals}f}"


SIGNS: dict[Verdict, str] = {"faster": "+", "slower": "-", "indistinguishable": "="}
SIGNS_MEAN = "+ faster  - slower  = indistinguishable: within 1 %, or within 10 % in a single process"


def speedup(ratio: ConfidenceInterval, verdict: Verdict) -> str:
    """A speed-up with its interval and verdict: `1.61x (1.54-1.70) +`."""
    return f"{interval(ratio)} {SIGNS[verdict]}"


def interval(ratio: ConfidenceInterval) -> str:
    """A ratio with its interval: `1.61x (1.54-1.70)`."""
    return f"{digits(ratio.value)}x ({digits(ratio.low)}-{digits(ratio.high)})"


def seconds(value: float) -> str:
    """A duration: `1.23 ms`."""
    scale, unit = next(((scale, unit) for scale, unit in _TIMES if abs(value) >= 0.9995 * scale), _TIMES[-1])
    return f"{digits(value / scale)} {unit}"


def span(interval: ConfidenceInterval) -> str:
    """The interval of a duration, the unit once where both ends share it: `333 – 337 µs`."""
    low, high = seconds(interval.low), seconds(interval.high)
    number, unit = low.split(" ")
    return f"{number if high.endswith(' ' + unit) else low} – {high}"


def rate(value: float, unit: str) -> str:
    """A rate: `21.0 GB/s`."""
    scale, prefix = next(
        ((scale, prefix) for scale, prefix in _PREFIXES if abs(value) >= 0.9995 * scale), _PREFIXES[-1]
    )
    return f"{digits(value / scale)} {prefix}{unit}"


def share(value: float) -> str:
    """A share: `78 %`; below one per cent with a digit more."""
    return f"{value:.0%}".replace("%", " %") if value >= 0.095 else f"{value:.1%}".replace("%", " %")


OUTCOMES_WITH_PLURAL = ("compile_error", "launch_error", "timeout")


def counted_outcome(count: int, outcome: str) -> str:
    """`1 compile error`, `2 compile errors`, `3 crashed`."""
    words = outcome.replace("_", " ")
    return counted(count, words) if outcome in OUTCOMES_WITH_PLURAL else f"{count:,} {words}"


def counted(count: int, noun: str) -> str:
    """`1 variant`, `2 variants`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
