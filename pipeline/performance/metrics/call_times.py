"""The time of one call: median, interval, quantiles, warm-up, and comparisons with baselines."""

import functools
from collections.abc import Callable, Sequence

from pipeline.performance.metrics.metric import MICROSECONDS, Metric, MetricFamily, Shown, of_profile
from pipeline.performance.quantities import baseline
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import Comparison, Profiled


def _processes(result: Result) -> int | None:
    """None for a recorded measurement: the file does not say."""
    run = result.profiled
    return None if run is None or run.recorded is not None else len(run.timing.processes) or 1


def _quantile(share: float, run: Profiled) -> float:
    return run.timing.quantile(share) / run.drift


def _time(
    name: str, meaning: str, value: Callable[[Profiled], object], mlflow: str, shown: Shown | None = None
) -> Metric:
    return Metric(
        name=name,
        type="double",
        unit="s",
        meaning=meaning,
        value=of_profile(value),
        mlflow=f"time/{mlflow}",
        mlflow_scale=MICROSECONDS,
        shown=shown,
    )


CALL_TIMES = (
    _time(
        "median_seconds",
        "Time of one call: the median, reduced by `drift` to the state of the device in which its baseline"
        " was first measured",
        lambda run: run.time.value,
        "median_us",
        Shown(heading="time", style="seconds", position=60),
    ),
    _time(
        "median_seconds_low",
        "Lower end of its interval",
        lambda run: run.time.low,
        "low_us",
    ),
    _time(
        "median_seconds_high",
        "Upper end of its interval",
        lambda run: run.time.high,
        "high_us",
    ),
    _time(
        "measured_seconds",
        "Median of the samples as measured, before the drift of the device was taken out",
        lambda run: run.timing.median.value,
        "measured_us",
    ),
    Metric(
        name="drift",
        type="double",
        unit="ratio",
        meaning="Time of the baseline in this run divided by its first time on the device: measured_seconds"
        " divided by median_seconds; 1 without a baseline",
        value=of_profile(lambda run: run.drift),
        mlflow="time/drift",
    ),
    Metric(
        name="processes",
        type="int64",
        meaning="Number of processes that timed it, one after the other",
        value=_processes,
        mlflow="time/processes",
    ),
    Metric(
        name="confidence",
        type="double",
        unit="share",
        meaning="Level of the intervals",
        value=of_profile(lambda run: run.time.confidence),
        mlflow="time/confidence",
    ),
    _time(
        "setup_seconds",
        "Load and allocate, before the first call",
        lambda run: run.timing.setup_seconds,
        "setup_us",
    ),
    _time(
        "first_call_seconds",
        "First call",
        lambda run: run.timing.first_call_seconds,
        "first_call_us",
    ),
    _time(
        "warmup_seconds",
        "Untimed calls before, until the time no longer drifted or the budget of the warm-up was spent",
        lambda run: run.timing.warmup_seconds,
        "warmup_us",
    ),
    _time(
        "host_seconds",
        "Host's part of a call: until it is enqueued (GPU), until the kernel's code starts (C++)",
        lambda run: run.timing.host_seconds,
        "host_us",
    ),
    Metric(
        name="launch",
        type="string",
        meaning="How a GPU gets its work: call by call (`stream`), or as a recorded CUDA graph (`graph`)",
        value=of_profile(lambda run: run.timing.launch),
    ),
    *(
        _time(
            f"p{round(100 * share):02d}_seconds",
            f"Quantile {share:g} of the calls if each is timed (mode server), else of the batches' means",
            functools.partial(_quantile, share),
            f"p{round(100 * share):02d}_us",
        )
        for share in (0.05, 0.95, 0.99)
    ),
)


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

    def baseline_seconds(result: Result) -> object:
        run = result.profiled
        entry = next((each for each in run.comparisons if each.baseline == name), None) if run else None
        return run.baseline_time(entry).value if run and entry else None

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
            meaning="Time of the baseline, reduced like the variant's: their ratio is the speed-up",
            value=baseline_seconds,
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
