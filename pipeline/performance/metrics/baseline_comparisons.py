"""Comparisons with baselines: the same metrics for each baseline."""

from collections.abc import Callable, Sequence

from pipeline.performance.metrics.metric import MICROSECONDS, Metric, MetricFamily, Shown
from pipeline.performance.quantities import baseline
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import Comparison


def _members(results: Sequence[Result]) -> list[Metric]:
    """Those of every baseline that any result was compared with, or should have been."""
    names: dict[str, None] = {}
    for result in results:
        if result.profiled:
            names |= dict.fromkeys(entry.baseline for entry in result.profiled.comparisons)
            names |= dict.fromkeys(entry.baseline for entry in result.profiled.absent)
    return [metric for name in names for metric in metrics_of_baseline(name)]


def metrics_of_baseline(name: str) -> tuple[Metric, ...]:
    """Time of the baseline, speed-up with its interval, verdict, and why it is absent."""

    def compared(value: Callable[[Comparison], object]) -> Callable[[Result], object]:
        def find(result: Result) -> object:
            comparisons = result.profiled.comparisons if result.profiled else ()
            return next((value(entry) for entry in comparisons if entry.baseline == name), None)

        return find

    def absent(result: Result) -> object:
        missing = result.profiled.absent if result.profiled else ()
        return next((entry.reason for entry in missing if entry.baseline == name), None)

    def ratio(
        column: str,
        meaning: str,
        mlflow: str,
        value: Callable[[Comparison], object],
        shown: Shown | None = None,
    ) -> Metric:
        return Metric(
            name=column,
            type="double",
            unit="ratio",
            meaning=meaning,
            value=compared(value),
            mlflow=mlflow,
            shown=shown,
        )

    return (
        ratio(
            f"speedup.{name}",
            f"Median time of {name} divided by the variant's, paired by batch; geometric mean over processes",
            f"speedup/{name}",
            lambda entry: entry.speedup.value,
            Shown(heading=f"vs {baseline(name)}", style="speedup", position=65),
        ),
        ratio(f"speedup.{name}.low", "Lower end", f"speedup/{name}_low", lambda entry: entry.speedup.low),
        ratio(f"speedup.{name}.high", "Upper end", f"speedup/{name}_high", lambda entry: entry.speedup.high),
        Metric(
            name=f"detectable.{name}",
            type="double",
            unit="share",
            meaning="Difference that the measurement detects with a probability of 80 %",
            value=compared(lambda entry: entry.minimum_detectable),
            mlflow=f"speedup/{name}_detectable",
        ),
        Metric(
            name=f"baseline.{name}.seconds",
            type="double",
            unit="s",
            meaning="Median time of the baseline",
            value=compared(lambda entry: entry.timing.median.value),
            mlflow=f"baseline/{name}_us",
            mlflow_scale=MICROSECONDS,
        ),
        Metric(
            name=f"verdict.{name}",
            type="string",
            meaning="Whether the variant is faster or slower, by the interval of the speed-up",
            value=compared(lambda entry: entry.verdict),
            mlflow=f"verdict/{name}",
        ),
        Metric(
            name=f"absent.{name}",
            type="string",
            meaning="Why the baseline was not measured",
            value=absent,
            mlflow=f"absent/{name}",
        ),
    )


BASELINES = MetricFamily(
    prefixes=("baseline.", "speedup.", "verdict.", "detectable.", "absent."),
    members=_members,
    documented=metrics_of_baseline("<baseline>"),
)
