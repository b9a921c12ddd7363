"""Metrics of verify: errors, weak checks, differences between calls, isolation."""

from collections.abc import Callable

from pipeline.performance.metrics.metric import Metric, Shown
from pipeline.records.results.collection import Result
from pipeline.records.results.verified import Verified


def _of_verify(value: Callable[[Verified], object]) -> Callable[[Result], object]:
    return lambda result: value(result.verified) if result.verified else None


VERIFICATION_ERRORS = (
    Metric(
        name="verify_where",
        type="string",
        meaning="Where verify ran: on the device, or reduced shapes in Triton's interpreter or an emulator",
        value=lambda result: result.verify.where if result.verify else None,
        mlflow="verified_on",
    ),
    Metric(
        name="verify_worst_share",
        type="double",
        meaning="Largest error divided by the derived bound",
        value=_of_verify(lambda ok: ok.worst_share),
        mlflow="check/error_share",
        shown=Shown(heading="error / bound", style="share", position=80),
    ),
    Metric(
        name="verify_worst_error",
        type="double",
        meaning="Largest absolute error",
        value=_of_verify(lambda ok: ok.worst_error),
        mlflow="check/worst_error",
    ),
    Metric(
        name="verify_weak",
        type="string",
        meaning="Trivial answers that would have passed as well; empty if none would",
        value=_of_verify(lambda ok: " ".join(ok.weak)),
        mlflow="weak_check",
    ),
    Metric(
        name="verify_differing",
        type="int64",
        meaning="Elements that differed between calls on equal inputs, of verify_compared",
        value=_of_verify(lambda ok: ok.differing),
        mlflow="check/differing",
    ),
    Metric(
        name="verify_compared",
        type="int64",
        meaning="Elements compared between calls on equal inputs",
        value=_of_verify(lambda ok: ok.compared),
        mlflow="check/compared",
    ),
    Metric(
        name="verify_isolation",
        type="string",
        meaning="Mechanisms that isolated the candidate's process",
        value=lambda result: ", ".join(result.verify.isolation) if result.verify else None,
    ),
)
