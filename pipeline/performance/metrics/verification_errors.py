"""What verify found."""

from collections.abc import Callable

from pipeline.performance.metrics.metric import Column, ColumnType
from pipeline.records.verified import Verified


def _verified(name: str, kind: ColumnType, meaning: str, value: Callable[[Verified], object]) -> Column:
    return Column(
        name=name,
        type=kind,
        meaning=meaning,
        value=lambda result: value(result.verified) if result.verified else None,
    )


VERIFICATION = (
    Column(
        name="verify_where",
        type="string",
        meaning="Where verify ran: on the device, or on reduced shapes in the Triton interpreter or emulated",
        value=lambda result: result.verify.where if result.verify else None,
    ),
    _verified(
        "verify_worst_share", "double", "Largest error over the derived bound", lambda ok: ok.worst_share
    ),
    _verified("verify_worst_error", "double", "Largest absolute error", lambda ok: ok.worst_error),
    _verified(
        "verify_weak",
        "string",
        "Trivial answers that would have passed as well; empty if none would",
        lambda ok: " ".join(ok.weak),
    ),
    _verified(
        "verify_differing",
        "int64",
        "Elements that differed between calls on equal inputs, among verify_compared",
        lambda ok: ok.differing,
    ),
    _verified(
        "verify_compared", "int64", "Elements compared between calls on equal inputs", lambda ok: ok.compared
    ),
    Column(
        name="verify_isolation",
        type="string",
        meaning="What confined the candidate's process",
        value=lambda result: ", ".join(result.verify.isolation) if result.verify else None,
    ),
)
