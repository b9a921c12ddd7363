"""How far a variant came: outcomes, wall times and store entries of the stages."""

from pipeline.performance.metrics.metric import Metric, Shown
from pipeline.records.results.collection import Result

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
