"""Comparisons with baselines: a group of columns for each of them."""

from collections.abc import Callable, Iterable, Sequence

from pipeline.performance.metrics.metric import Column, ColumnType
from pipeline.records.profiled import Comparison
from pipeline.records.results import Result


def baseline_columns(results: Sequence[Result]) -> list[Column]:
    """Those of every baseline that any result was compared with, or should have been."""
    names: dict[str, None] = {}
    for result in results:
        if result.profiled:
            names |= dict.fromkeys(entry.baseline for entry in result.profiled.comparisons)
            names |= dict.fromkeys(entry.baseline for entry in result.profiled.absent)
    return [column for name in names for column in _columns(name)]


def _columns(name: str) -> Iterable[Column]:
    def compared(value: Callable[[Comparison], object]) -> Callable[[Result], object]:
        def find(result: Result) -> object:
            comparisons = result.profiled.comparisons if result.profiled else ()
            return next((value(entry) for entry in comparisons if entry.baseline == name), None)

        return find

    def absent(result: Result) -> object:
        missing = result.profiled.absent if result.profiled else ()
        return next((entry.reason for entry in missing if entry.baseline == name), None)

    time, ratio = (
        "Median time of the baseline",
        f"Median time of {name} over that of the variant, paired by batch; geometric mean over processes",
    )
    fields: tuple[tuple[str, ColumnType, str, str, Callable[[Result], object]], ...] = (
        (f"baseline.{name}.seconds", "double", "s", time, compared(lambda entry: entry.timing.median.value)),
        (f"speedup.{name}", "double", "ratio", ratio, compared(lambda entry: entry.speedup.value)),
        (f"speedup.{name}.low", "double", "ratio", "Lower end", compared(lambda entry: entry.speedup.low)),
        (f"speedup.{name}.high", "double", "ratio", "Upper end", compared(lambda entry: entry.speedup.high)),
        (f"verdict.{name}", "string", "", "Of the interval", compared(lambda entry: entry.verdict)),
        (
            f"detectable.{name}",
            "double",
            "share",
            "Difference that the measurement would have seen with a probability of 80 %",
            compared(lambda entry: entry.minimum_detectable),
        ),
        (f"absent.{name}", "string", "", "Why the baseline was not measured", absent),
    )
    return (
        Column(name=label, type=kind, unit=unit, meaning=meaning, value=value)
        for label, kind, unit, meaning, value in fields
    )
