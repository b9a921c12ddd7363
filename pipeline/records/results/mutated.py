"""Mutants of a kernel's sources, and whether the gate found them."""

from typing import Literal

from pipeline.records.configuration.kernel import TunableValue
from pipeline.records.outcome import Outcome
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record

EFFORT = 3

Fate = Literal["killed", "survived", "same_code", "not_compiled"]
"""`same_code`: the machine code of every tried variant stayed as it was, because the change is equivalent or
stands in code that none of them contains. Only the first two say something of the gate."""


class Mutation(Record, frozen=True, kw_only=True):
    """How many mutants are made, and what they are tried on (`conf/mutation/`)."""

    name: str
    """Name of the option, equal to the file's."""
    description: str
    """One sentence for listings and reports."""
    report: bool
    """Whether the experiment's report includes the mutation score."""
    per_operator: int
    """Verified mutants per mutation operator and implementation. More are made if some do not compile or do
    not change the machine code."""
    variants_at_most: int
    """Maximum number of variants on which a mutant is tried, over all tasks."""
    presets: tuple[str, ...]
    """Presets of `verify`; the first one determines the score, the others are reported as well."""
    time_limit: float
    """Seconds before a mutant is interrupted and tried again with the preset's full limit."""

    def __post_init__(self) -> None:
        """A score over nothing would be a perfect one."""
        for field in ("per_operator", "variants_at_most", "time_limit"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field}: got {getattr(self, field)}, expected at least 1")
        if not self.presets:
            raise ValueError("presets: expected at least one preset of verify")


class Mutant(Record, frozen=True, kw_only=True):
    """One small mistake in one line of a source."""

    id: str
    """Operator and digest of the change; stays when lines move."""
    operator: str
    file: str
    """From the repository's root."""
    line: int
    before: str
    after: str
    start: int
    """Bytes from the file's start to what is replaced."""
    end: int
    replacement: str
    host: bool = False
    """Whether the line belongs to the launch code of a just-in-time backend, which no binary shows."""


class Judged(Record, frozen=True, kw_only=True):
    """What one preset of verify said of a mutant."""

    killed: bool
    outcome: Outcome | None
    """Of the failure that killed it."""
    reason: str | None
    problem: str | None
    """Dimensions and type of the task on which it was killed."""
    tunables: dict[str, TunableValue] | None
    """Of the variant on which it was killed."""


class MutantRecord(Record, frozen=True, kw_only=True):
    """How it went with one mutant."""

    mutant: Mutant
    entry: str
    fate: Fate
    """By the first preset."""
    reason: str | None
    """Why it did not compile."""
    presets: dict[str, Judged]
    """Name of the preset -> verdict; empty where there was nothing to judge."""
    tried: int
    """Variants that the mistake changed and the gate judged."""
    unjudged: tuple[str, ...]
    """Variants that could not serve because the kernel itself does not pass there, each with the reason."""
    seconds: float
    provenance: Provenance


class MutateOutput(Record, frozen=True, kw_only=True):
    """What mutate writes for one implementation of a kernel."""

    key: str
    kernel: str
    implementation: str
    preset: str
    """The first one, which decides the fate."""
    records: tuple[MutantRecord, ...]
    sites: dict[str, int]
    """Operator -> places where it applies; 0: it does not apply to this source."""
    unjudged: tuple[str, ...]
    """As in the records, and there where there are none because no variant could serve."""
    seconds: float
