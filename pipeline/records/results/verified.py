"""What verify found out about one variant."""

from pipeline.records.outcome import Failure
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record, require_all, require_none
from pipeline.records.results.variant import Variant

WhereRun = str
"""A kind of device, or what stands in for one: `interpreter`, `emulator`, `recorded`."""

_OF_A_VERDICT = ("worst_share", "worst_error")


class CheckResult(Record, frozen=True, kw_only=True):
    """One check of the gate."""

    check: str
    cases: int
    """How many calls it judged."""
    seconds: float


class Verified(Record, frozen=True, kw_only=True, tag="passed"):
    """A variant that passed every check."""

    worst_share: float | None = None
    """Largest error as a share of the derived bound, over all cases; below 1. None where it was not seen:
    only where somebody's record says that the variant was right."""
    worst_error: float | None = None
    """Largest absolute error; None likewise."""
    differing: int = 0
    """Elements that differed bitwise between calls on equal inputs: 0 where the kernel claims determinism."""
    compared: int = 0
    """Elements that were compared so, all such calls together."""
    weak: tuple[str, ...] = ()
    """Trivial answers (`zeros`, `mean`, `input x`) that would pass every case: the check is too weak."""
    weak_cases: tuple[str, ...] = ()
    """Trivial answers that pass single cases, with the case: `ones: rows=5 cols=1, normal, seed 17`."""


class VerifyRecord(Record, frozen=True, kw_only=True):
    """One variant on one problem."""

    variant: Variant
    entry: str
    result: Verified | Failure
    isolation: tuple[str, ...] = ()
    """What confined the candidate's process: `landlock 7`, `seccomp`, …; what is not named was not active."""
    where: WhereRun
    """Where the device is absent, on reduced shapes: `interpreter` is Triton's, `emulator` runs CUDA C++ on
    the CPU, thread by thread. `recorded`: nothing ran, somebody's record says that it was right."""
    checks: tuple[CheckResult, ...]
    shapes: tuple[dict[str, int], ...]
    """Dimensions that were tried."""
    seeds: tuple[int, ...]
    seconds: float
    provenance: Provenance

    def __post_init__(self) -> None:
        """Who ran a variant and let it pass has seen its errors; who ran nothing has seen none."""
        if isinstance(self.result, Verified):
            if self.where == "recorded":
                require_none(self.result, _OF_A_VERDICT, "a verdict")
            else:
                require_all(self.result, _OF_A_VERDICT, f"a verdict from {self.where}")


class VerifyOutput(Record, frozen=True, kw_only=True):
    """What verify writes for one round of one task: only what compiled is in it."""

    key: str
    round: int
    records: tuple[VerifyRecord, ...]
    unwanted: dict[str, str] = {}
    """Variant -> why static pruning does not want it measured; some of them are, all the same."""
    undecided: dict[str, str] = {}
    """Variant that stays -> why a rule of static pruning cannot say anything about it."""
