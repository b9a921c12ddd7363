"""How far a variant came, and what verify found: outcomes, wall times, store entries, errors, isolation."""

from collections.abc import Callable

from pipeline.performance.metrics.metric import Metric, Shown
from pipeline.records.results.collection import Result
from pipeline.records.results.verified import Verified

STAGES = ("compile", "verify", "profile")


def _outcome(stage: str) -> Metric:
    def value(result: Result) -> object:
        record = result.records.get(stage)
        if record is None:
            return None
        return str(getattr(record.result, "outcome", "passed"))

    return Metric(
        name=f"{stage}_outcome",
        type="string",
        meaning=f"Outcome of {stage}; absent if the variant did not reach it",
        value=value,
    )


def _seconds(stage: str) -> Metric:
    compiling = stage == "compile"
    return Metric(
        name=f"{stage}_seconds",
        type="double",
        unit="s",
        meaning=f"Wall time of {stage} for the variant, when it was done and not taken from the store",
        value=lambda result: result.records[stage].seconds if stage in result.records else None,
        mlflow="static/compile_seconds" if compiling else f"stage/{stage}_seconds",
        shown=Shown(heading="compile", style="seconds", position=150) if compiling else None,
    )


def _folder(stage: str) -> Metric:
    return Metric(
        name=f"{stage}_folder",
        type="string",
        meaning=f"Store entry of {stage} with its record and files, relative to the artifacts' root",
        value=lambda result: result.folder(stage),
    )


STAGE_OUTCOMES = (
    Metric(
        name="stage",
        type="string",
        meaning="Last stage that the variant reached; of a failure, the stage that failed",
        value=lambda result: result.stage,
    ),
    Metric(
        name="outcome",
        type="string",
        meaning="Outcome of the last stage that the variant reached: passed, or the first failure",
        value=lambda result: str(result.outcome),
        shown=Shown(heading="outcome", style="outcome", position=50),
    ),
    Metric(
        name="reason",
        type="string",
        meaning="Why it failed",
        value=lambda result: result.failure.reason if result.failure else None,
    ),
    Metric(
        name="log",
        type="string",
        meaning="Log of the failure, relative to the artifacts' root",
        value=lambda result: result.log,
    ),
    *(_outcome(stage) for stage in STAGES),
    *(_seconds(stage) for stage in STAGES),
    *(_folder(stage) for stage in STAGES),
)


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
        name="verify_preset",
        type="string",
        meaning="Preset of verify that the variant passed: how strictly it was judged",
        value=lambda result: result.task.preset if result.verified else None,
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
