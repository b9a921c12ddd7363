"""What another tuner measured, or declared to be tuned, in our words: a space and the results on it."""

import msgspec

from pipeline.records.configuration.kernel import Constraint, TunableValue
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record


class RecordedResult(Record, frozen=True, kw_only=True):
    """One configuration as it was recorded; what the file does not say is absent."""

    tunables: dict[str, TunableValue]
    outcome: Outcome
    reason: str | None = None
    """Of a failure: what the file calls it."""
    samples: tuple[float, ...] = ()
    """Seconds, in the order recorded."""
    seconds: float | None = None
    """What the file itself gives as the time; Kernel Tuner: the mean of the samples."""
    median_seconds: float | None = None
    """Of the samples; where there are none, the file's own time."""
    compile_seconds: float | None = None
    benchmark_seconds: float | None = None
    """All that measuring this configuration took, warm-up included."""
    verify_seconds: float | None = None
    framework_seconds: float | None = None
    search_seconds: float | None = None
    joules: float | None = None
    """Energy of one call."""
    measurements: dict[str, float] = {}
    """Whatever else was measured, as the file names it and in its unit: `GFLOP/s`, `temperature`, …"""
    timestamp: str | None = None

    def __post_init__(self) -> None:
        """A failure has its reason, and nothing that failed has a time."""
        if self.outcome is Outcome.PASSED:
            if self.reason is not None:
                raise ValueError("a result that passed has no reason")
        elif self.reason is None or self.seconds is not None or self.samples:
            raise ValueError(f"a result that ended '{self.outcome}' has a reason and no time")

    @property
    def cost_seconds(self) -> float:
        """Total cost of trying this configuration, as far as the file says."""
        parts = (self.compile_seconds, self.benchmark_seconds, self.verify_seconds, self.framework_seconds)
        return sum(part for part in parts if part is not None)


class RecordedFile(Record, frozen=True, kw_only=True):
    """A file of recorded measurements that a task replays, as the plan found it."""

    path: str
    """From the project, as it was given."""
    digest: str
    format: str
    device: str | None
    """As the file names it."""
    implementation: str
    """The one that the results are of."""
    space: str | None = None
    """The file that the space is from, where it is another one."""

    @property
    def line(self) -> str:
        """Whose measurements these are, for tables and pages."""
        device = self.device or "a device that the file does not name"
        return f"{device}, recorded in {self.path.rpartition('/')[2]} ({self.digest})"


class RecordedArgument(Record, frozen=True, kw_only=True):
    """One argument of the kernel that is tuned."""

    name: str
    type: str
    memory: str | None = None
    """`Vector`, `Scalar`, …"""
    access: str | None = None
    """`ReadOnly`, `WriteOnly`, `ReadWrite`."""
    size: int | str | None = None
    """Elements, or the formula of their number as the file has it."""


class RecordedSpace(Record, frozen=True, kw_only=True):
    """A search space and what was measured on it: T1 has no results, T4 and cache files no constraints."""

    source: str
    """Name of the file."""
    format: str
    """Name of the format: `T1`, `T4`, `cache`, ..."""
    kernel: str | None = None
    device: str | None = None
    """As the file names it; T4 and T1 do not say."""
    language: str | None = None
    problem: tuple[int, ...] = ()
    """Its size, as the tuner counts it."""
    arguments: tuple[RecordedArgument, ...] = ()
    unit: str | None = None
    """Of the times in the file (`milliseconds`); here they are seconds."""
    objective: str = "time"
    """What was tuned for; where it is no time, it is one of the measurements."""
    tunables: dict[str, tuple[TunableValue, ...]]
    order: tuple[str, ...] = ()
    """Names of the tunables as declared, which sorted JSON loses."""
    defaults: dict[str, TunableValue] = {}
    """Of those tunables whose declared default is among their values."""
    constraints: tuple[Constraint, ...] = ()
    constants: dict[str, TunableValue] = {}
    """Names that the constraints may use in addition to the tunables."""
    results: tuple[RecordedResult, ...] = ()
    notes: tuple[str, ...] = ()
    """What was amended while reading, one sentence each."""

    def __post_init__(self) -> None:
        """Take the order from the declaration, or bring what was read back from JSON into it."""
        if not self.order:
            msgspec.structs.force_setattr(self, "order", tuple(self.tunables))
        msgspec.structs.force_setattr(self, "tunables", {name: self.tunables[name] for name in self.order})
