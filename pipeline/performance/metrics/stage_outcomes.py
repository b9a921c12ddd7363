"""How far a variant came: outcomes, wall times and store entries of the stages."""

from pipeline.performance.metrics.metric import Column
from pipeline.records.results import Result


def _outcome(stage: str) -> Column:
    def value(result: Result) -> object:
        record = result.records.get(stage)
        if record is None:
            return None
        return str(getattr(record.result, "outcome", "passed"))

    return Column(
        name=f"{stage}_outcome",
        type="string",
        meaning=f"Outcome of {stage}; absent if not reached",
        value=value,
    )


def _seconds(stage: str) -> Column:
    return Column(
        name=f"{stage}_seconds",
        type="double",
        unit="s",
        meaning=f"Wall time of {stage} for the variant, when it was made and not taken from the store",
        value=lambda result: result.records[stage].seconds if stage in result.records else None,
    )


def _folder(stage: str) -> Column:
    return Column(
        name=f"{stage}_folder",
        type="string",
        meaning=f"Store entry of {stage} with its record and files, from the artifacts' root",
        value=lambda result: result.folder(stage),
    )


OUTCOME = (
    Column(
        name="stage",
        type="string",
        meaning="Last stage reached; that of the failure",
        value=lambda result: result.stage,
    ),
    Column(
        name="outcome",
        type="string",
        meaning="Outcome of the last stage reached: passed, or the first failure",
        value=lambda result: str(result.outcome),
    ),
    Column(
        name="reason",
        type="string",
        meaning="Why it failed",
        value=lambda result: result.failure.reason if result.failure else None,
    ),
    Column(
        name="log",
        type="string",
        meaning="Log of the failure, from the artifacts' root",
        value=lambda result: result.log,
    ),
    *(_outcome(stage) for stage in ("compile", "verify", "profile")),
    *(_seconds(stage) for stage in ("compile", "verify", "profile")),
    *(_folder(stage) for stage in ("compile", "verify", "profile")),
)
