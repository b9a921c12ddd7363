"""How a stage ended for one variant: passed, or the reason why not."""

from enum import StrEnum

from pipeline.records.record import Record


class Outcome(StrEnum):
    """The typed result of a stage; two causes that a user would fix differently never share one."""

    PASSED = "passed"
    PASSED_REDUCED = "passed_reduced"
    """A candidate is right on reduced sizes, and the declared ones could not be tried here."""
    PRUNED = "pruned"
    COMPILE_ERROR = "compile_error"
    LAUNCH_ERROR = "launch_error"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    OUTPUT_LIMIT = "output_limit"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_VALUE = "wrong_value"
    UNWRITTEN_OUTPUT = "unwritten_output"
    OUT_OF_BOUNDS = "out_of_bounds"
    INPUT_MUTATED = "input_mutated"
    INPUT_REUSED = "input_reused"
    """The outputs are correct, and an input was overwritten: right where the function documents it."""
    NONDETERMINISTIC = "nondeterministic"
    TAMPERED = "tampered"
    UNSTABLE_TIMING = "unstable_timing"
    OVER_ROOFLINE = "over_roofline"
    DEVICE_UNAVAILABLE = "device_unavailable"
    NOT_WRITTEN = "not_written"
    """Who was to write the source did not: a language model's answer without one, or none at all."""
    SCREENED = "screened"
    """Measured briefly by a search, and not among those that were then measured fully."""
    BAD_PROBLEM = "bad_problem"
    """A problem from elsewhere that cannot be judged on: its candidates are not to blame."""
    NOT_RECORDED = "not_recorded"
    """Recorded measurements are replayed, and this variant is not among them."""
    NOT_JUDGED = "not_judged"
    """The judge itself did not come to a verdict."""


class Failure(Record, frozen=True, kw_only=True, tag="failure"):
    """An expected failure: data, not an exception."""

    outcome: Outcome
    reason: str
    """One line for a table: what happened, got and expected."""
    log: str | None = None
    """Name of a log file next to the stored record, if there is one."""

    def __post_init__(self) -> None:
        if self.outcome is Outcome.PASSED:
            raise ValueError("a Failure cannot have the outcome 'passed'")
