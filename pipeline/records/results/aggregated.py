"""What aggregate found, small enough to read at a glance: counts, winners, and where the tables are."""

from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.outcome import Outcome
from pipeline.records.provenance import Origin, Provenance
from pipeline.records.record import Record, require_all, require_none
from pipeline.records.results.profiled import AbsentBaseline, Bound, ConfidenceInterval, Verdict
from pipeline.records.results.verified import WhereRun


class Cell(Record, frozen=True, kw_only=True):
    """What a winner is chosen for: all tasks that differ only in optimization and search compete."""

    kernel: str
    workload: str
    hardware: str
    dtype: str


class BaselineComparison(Record, frozen=True, kw_only=True):
    """The winner against one baseline."""

    baseline: str
    seconds: ConfidenceInterval
    """Of the baseline."""
    speedup: ConfidenceInterval
    verdict: Verdict


class Winner(Record, frozen=True, kw_only=True, tag="measured"):
    """The fastest variant of a cell among those that verified and were measured."""

    cell: Cell
    task: str
    variant: str
    implementation: str
    tunables: dict[str, TunableValue]
    written_by: str | None = None
    """Strategy and author of a source that a search wrote, or `the declared source`; None: none did."""
    seconds: ConfidenceInterval
    compared: tuple[BaselineComparison, ...]
    absent: tuple[AbsentBaseline, ...]
    flops_per_second: float | None
    bytes_per_second: float | None
    roofline_share: float | None
    bound: Bound | None
    level: str | None = None
    """The level of memory that holds its data."""
    where: WhereRun
    recorded: str | None = None
    """Of which device and from which file, where the times were recorded and not measured here."""
    preset: str | None = None
    """Of verify: how strictly it was judged; None where nothing was judged here."""
    editing_only: bool = False
    """Whether that preset is for editing loops: then the winner is not registered as a model."""
    weak: tuple[str, ...]
    """Trivial answers that the check would have let pass: the verification is too weak."""
    variants: int
    """Distinct variants that were proposed for the cell."""
    verified: int
    measured: int
    tied: int
    """How many others have a time interval that overlaps with the winner's."""

    def __post_init__(self) -> None:
        """What was measured here has its rates and its place under the roofline, unlike the recorded."""
        place = ("roofline_share", "bound")
        if self.recorded is None:
            require_all(self, ("flops_per_second", "bytes_per_second", *place), "a winner")
        else:
            require_none(self, place, "a winner")

    @property
    def baseline_shares(self) -> dict[str, float]:
        """Baseline -> its own share of the roofline; empty without a roofline."""
        if self.roofline_share is None:
            return {}
        return {each.baseline: self.roofline_share / each.speedup.value for each in self.compared}


class NotMeasured(Record, frozen=True, kw_only=True, tag="not_measured"):
    """A cell without a winner, because nothing was measured in it."""

    cell: Cell
    reason: str
    """`device unavailable`, or what stopped the variants: `12 compile_error, 3 wrong_value`."""
    variants: int
    compiled: int
    verified: int
    where: str | None
    """Where verify ran (`emulator, interpreter` where backends differ); None if nothing came so far."""
    estimate_roofline_seconds: float | None
    """Estimate from the declared peaks: no kernel can be faster; None where a peak is not declared."""


class TargetSeen(Record, frozen=True, kw_only=True):
    """A hardware target of the experiment, and the device on which it was measured."""

    hardware: str
    kind: DeviceKind
    device_present: bool
    device: dict[str, str]
    """What all its measurements found alike; empty where nothing was measured."""


class AgentUse(Record, frozen=True, kw_only=True):
    """What the language models that wrote for a kernel were asked, and what that took."""

    kernel: str
    attempts: int
    sources: int
    """Of them those that came to one."""
    requests: int
    prompt_tokens: int | None
    """Of all answers; None where an endpoint did not count one: a part would pass for the whole."""
    completion_tokens: int | None
    cost: float | None
    currency: str | None
    seconds: float | None
    """Time to the answers, one after the other."""


class Summary(Record, frozen=True, kw_only=True):
    """One experiment."""

    experiment: str
    description: str
    provenance: Provenance
    """Of these tables; each result has its own in the store."""
    tasks: int
    variants: int
    """Task x variant pairs: the rows of the table `variants`."""
    stages: dict[str, dict[Outcome, int]]
    """Stage -> outcome -> how many variants."""
    winners: tuple[Winner | NotMeasured, ...]
    targets: tuple[TargetSeen, ...]
    toolchain: dict[str, tuple[str, ...]]
    """Versions that made the results; several where cached results are older than others."""
    commits: tuple[str, ...]
    """Of the checkout that made the results, `+` where it was dirty."""
    hosts: tuple[str, ...]
    origin: Origin | None = None
    """The other machine that made the results; None where this checkout did."""
    measured_from: str | None
    """First and last measurement: UTC, ISO 8601."""
    measured_to: str | None
    tables: dict[str, str]
    """Table -> file name, in the folder of this record."""
    agents: tuple[AgentUse, ...] = ()
    """Where language models wrote sources, kernel by kernel."""
