"""The time of one call: median, interval, quantiles, and what comes before the steady state."""

import functools

from pipeline.performance.metrics.metric import Column, measured
from pipeline.records.profiled import Profiled
from pipeline.records.results import Result


def _processes(result: Result) -> int | None:
    """Nothing is known of those of a recorded measurement."""
    run = result.profiled
    return None if run is None or run.recorded is not None else len(run.timing.processes) or 1


def _quantile(share: float, run: Profiled) -> float:
    return run.timing.quantile(share)


TIMING = (
    measured("median_seconds", "Median time of one call", "s", lambda run: run.timing.median.value),
    measured("median_seconds_low", "Lower end of its interval", "s", lambda run: run.timing.median.low),
    measured("median_seconds_high", "Upper end of its interval", "s", lambda run: run.timing.median.high),
    Column(
        name="processes",
        type="int64",
        meaning="Processes that it was timed in, one after the other",
        value=_processes,
    ),
    measured("confidence", "Level of the intervals", "share", lambda run: run.timing.median.confidence),
    measured(
        "setup_seconds", "Load and allocate, before the first call", "s", lambda run: run.timing.setup_seconds
    ),
    measured("first_call_seconds", "First call", "s", lambda run: run.timing.first_call_seconds),
    measured(
        "warmup_seconds",
        "Untimed calls before, until the time did not drift any more or the warm-up was at its end",
        "s",
        lambda run: run.timing.warmup_seconds,
    ),
    measured(
        "host_seconds",
        "Host's part of a call: until it is enqueued (GPU), until the kernel's code starts (C++)",
        "s",
        lambda run: run.timing.host_seconds,
    ),
    *(
        measured(
            f"p{round(100 * share):02d}_seconds",
            f"Quantile {share:g} of the calls where each is timed (mode server), else of the batches' means",
            "s",
            functools.partial(_quantile, share),
        )
        for share in (0.05, 0.95, 0.99)
    ),
)
