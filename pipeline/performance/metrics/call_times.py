"""The time of one call: median, interval, quantiles, and what precedes the steady state."""

import functools
from collections.abc import Callable

from pipeline.performance.metrics.metric import MICROSECONDS, Metric, Shown, of_profile
from pipeline.records.results.collection import Result
from pipeline.records.results.profiled import Profiled


def _processes(result: Result) -> int | None:
    """None for a recorded measurement: the file does not say."""
    run = result.profiled
    return None if run is None or run.recorded is not None else len(run.timing.processes) or 1


def _quantile(share: float, run: Profiled) -> float:
    return run.timing.quantile(share)


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
        "Median time of one call",
        lambda run: run.timing.median.value,
        "median_us",
        Shown(heading="time", style="seconds", position=60),
    ),
    _time(
        "median_seconds_low",
        "Lower end of its interval",
        lambda run: run.timing.median.low,
        "low_us",
    ),
    _time(
        "median_seconds_high",
        "Upper end of its interval",
        lambda run: run.timing.median.high,
        "high_us",
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
        value=of_profile(lambda run: run.timing.median.confidence),
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
