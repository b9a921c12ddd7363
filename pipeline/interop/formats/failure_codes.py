"""How other tuners mark what failed. In: a marker, T4's `invalidity`. Out: our outcome, and back."""

import math

from pipeline.records.outcome import Outcome

MARKERS = {
    "InvalidConfig": Outcome.PRUNED,
    "CompilationFailedConfig": Outcome.COMPILE_ERROR,
    "RuntimeFailedConfig": Outcome.LAUNCH_ERROR,
    "ErrorConfig": Outcome.LAUNCH_ERROR,
    "InfinityTime": Outcome.LAUNCH_ERROR,
}
"""What Kernel Tuner writes in place of a time; the last two do not say what failed."""

NO_TIME = 1e20  # milliseconds: what Kernel Tuner's versions before 0.4 wrote in place of a time

INVALIDITIES = {
    "timeout": Outcome.TIMEOUT,
    "compile": Outcome.COMPILE_ERROR,
    "runtime": Outcome.LAUNCH_ERROR,
    "correctness": Outcome.WRONG_VALUE,
    "constraints": Outcome.PRUNED,
}
"""T4's words, beside `correct`."""

_WRONG = (
    *(Outcome.WRONG_SHAPE, Outcome.WRONG_DTYPE, Outcome.WRONG_VALUE, Outcome.UNWRITTEN_OUTPUT),
    *(Outcome.OUT_OF_BOUNDS, Outcome.INPUT_MUTATED, Outcome.NONDETERMINISTIC, Outcome.TAMPERED),
)


def marked(value: object) -> tuple[Outcome, str] | None:
    """The failure that stands in place of a measured value; None where it is a value."""
    if isinstance(value, str):
        outcome = MARKERS.get(value)
        return None if outcome is None else (outcome, value)
    if value is None:
        return Outcome.LAUNCH_ERROR, "no value"
    if isinstance(value, float) and (math.isnan(value) or abs(value) >= NO_TIME):
        return Outcome.LAUNCH_ERROR, f"{value:g} in place of a value"
    return None


def invalidity_of(outcome: Outcome) -> str:
    """T4's word for an outcome of ours: it has five words for failures, the measurements keep ours."""
    if outcome is Outcome.PASSED:
        return "correct"
    if outcome in _WRONG:
        return "correctness"
    for word, known in INVALIDITIES.items():
        if outcome is known:
            return word
    return "runtime"
