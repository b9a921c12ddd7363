"""A row of an exported data set: a variant with its reference, its source, and all that was found out of it.

No field is a mapping, so that each has one type in JSON Lines and in Parquet. What was estimated has a name
that begins with `estimate_`.
"""

from typing import Literal

from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.outcome import Outcome
from pipeline.records.record import Record, require_all, require_none
from pipeline.records.results.attempts import AttemptSpeedup
from pipeline.records.results.diagnosed import Basis, Evidence
from pipeline.records.results.profiled import Bound, ConfidenceInterval, Verdict
from pipeline.records.results.verified import WhereRun

SCHEMA_VERSION = 1
"""Of every table: raised where a field changes its meaning or goes."""

SettingKind = Literal["boolean", "integer", "number", "text"]


class Setting(Record, frozen=True, kw_only=True):
    """One value of a tunable or an attribute, as a text of its kind: `true`, `128`, `0.5`, `single`."""

    name: str
    kind: SettingKind
    value: str


class Size(Record, frozen=True, kw_only=True):
    """One dimension, or one counted thing."""

    name: str
    value: int


class Fact(Record, frozen=True, kw_only=True):
    """A name and what it says: a version, a property of the device."""

    name: str
    value: str


class SourcePart(Record, frozen=True, kw_only=True):
    """A file that a source includes or imports; its text is in the table `files`."""

    path: str
    digest: str


class DatasetSource(Record, frozen=True, kw_only=True):
    """A source with where it comes from; either its text or the reason why that is absent."""

    text: str | None
    absent: str | None
    path: str | None
    """From the repository's root; of what a search wrote, that of the source in whose place it stands."""
    language: str
    """`Python`, `Triton`, `C++`, `CUDA C++`, or that of another package's backend."""
    origin: str | None
    licence: str | None
    parts: tuple[SourcePart, ...] = ()

    def __post_init__(self) -> None:
        """Nothing is absent without a reason."""
        if (self.text is None) != (self.absent is not None):
            raise ValueError("a source has either its text or the reason why that is absent")


StageName = Literal["compile", "verify", "profile"]


class StageEnd(Record, frozen=True, kw_only=True):
    """How one stage ended for the variant."""

    stage: StageName
    outcome: Outcome
    reason: str | None
    seconds: float
    """Of the stage, when it ran."""


class Verification(Record, frozen=True, kw_only=True):
    """What verify says of what passed."""

    where: WhereRun
    """`interpreter` and `emulator`: the device was absent, and shapes were reduced."""
    worst_share: float | None
    """Largest error as a share of its bound."""
    worst_error: float | None
    checks: tuple[str, ...]
    weak: tuple[str, ...]
    """Trivial answers that would pass, too."""
    isolation: tuple[str, ...]

    def __post_init__(self) -> None:
        """Only recorded results lack their errors."""
        names = ("worst_share", "worst_error")
        if self.where == "recorded":
            require_none(self, names, "a verdict")
        else:
            require_all(self, names, f"a verdict from {self.where}")


class StaticFact(Record, frozen=True, kw_only=True):
    """What was read from the machine code; None where the backend cannot know it."""

    code_bytes: int | None
    registers: int | None
    scalar_registers: int | None
    spills: int | None
    shared_memory: int | None
    threads_per_block: int | None
    local_memory: int | None
    barriers: int | None
    matrix: tuple[Size, ...]
    extensions: tuple[Size, ...]
    instructions: tuple[Size, ...]
    estimate_occupancy: float | None
    estimate_occupancy_limiter: str | None
    estimate_resident_blocks: int | None


class ExportedComparison(Record, frozen=True, kw_only=True):
    """The variant against a baseline that was measured with it."""

    baseline: str
    seconds: ConfidenceInterval
    """Of the baseline."""
    speedup: ConfidenceInterval
    """Baseline over variant: above 1 is faster."""
    verdict: Verdict


class AbsentComparison(Record, frozen=True, kw_only=True):
    """A baseline that could not be measured."""

    baseline: str
    reason: str


class Measurement(Record, frozen=True, kw_only=True):
    """What profile measured; exists only for what verified."""

    seconds: ConfidenceInterval
    """Median of a call."""
    batches: int
    processes: int
    """That the batches were timed in, one after the other."""
    calls_per_batch: int | None
    joules: float | None
    roofline_share: float | None
    bound: Bound | None
    compared: tuple[ExportedComparison, ...]
    absent: tuple[AbsentComparison, ...]
    device: tuple[Fact, ...]
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        """What was recorded elsewhere is no measurement of ours."""
        require_all(self, ("calls_per_batch", "roofline_share", "bound"), "a measurement")


class Advice(Record, frozen=True, kw_only=True):
    """A tunable that acts on a finding."""

    tunable: str
    technique: str | None
    direction: str
    values: tuple[Setting, ...]


class Diagnosed(Record, frozen=True, kw_only=True):
    """What limits the variant; `basis` says whether it is measured, read from the binary, or an estimate."""

    code: str
    basis: Basis
    sentence: str
    evidence: tuple[Evidence, ...]
    estimate_gain_at_most: float | None
    advice: tuple[Advice, ...]


class Said(Record, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: str
    content: str


class Question(Record, frozen=True, kw_only=True):
    """What a language model was asked and what it answered."""

    role: str
    """`judge` or `coder`."""
    template: str
    version: str
    model: str
    outcome: str
    reason: str | None
    messages: tuple[Said, ...]
    answer: str | None
    refusal: str | None
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    currency: str | None
    seconds: float | None
    tries: int


class ModelTrace(Record, frozen=True, kw_only=True):
    """How a language model came to write the source."""

    change: str | None
    """The one change that was asked for."""
    questions: tuple[Question, ...]
    absent: str | None
    """Why the questions are left out."""


class StageProvenance(Record, frozen=True, kw_only=True):
    """When and with what a stage's record was made."""

    stage: str
    created: str
    """UTC, ISO 8601."""
    code: str
    """Digest of the stage's own code."""
    git: str | None
    versions: tuple[Fact, ...]


class DatasetRow(Record, frozen=True, kw_only=True):
    """One variant of one problem on one target."""

    schema_version: int = SCHEMA_VERSION
    id: str
    """Follows from problem, target, variant and what was found out: equal in every export."""
    group: str
    """Equal for all that computes the same: kernel, attributes, dimensions and dtype."""
    experiment: str
    kernel: str
    description: str | None
    category: str | None
    workload: str
    dimensions: tuple[Size, ...]
    dtype: str
    attributes: tuple[Setting, ...]
    hardware: str
    kind: DeviceKind
    architecture: str | None
    optimization: str
    search: str
    round: int
    variant: str
    implementation: str
    backend: str
    tunables: tuple[Setting, ...]
    reference: DatasetSource
    differentiated: bool
    """Whether the kernel returns gradients of the reference."""
    source: DatasetSource
    source_digest: str
    written: bool
    """Whether a search wrote the source."""
    author: str | None
    """`llm: MODEL`, `mutate: TRANSFORMATION`, …"""
    parents: tuple[str, ...]
    """Ids of variants."""
    outcome: Outcome
    """Of the last stage that it reached."""
    stages: tuple[StageEnd, ...]
    verification: Verification | None
    facts: StaticFact | None
    measurement: Measurement | None
    diagnosis: tuple[Diagnosed, ...]
    feedback: str
    """The same in words: what one would tell the writer."""
    trace: ModelTrace | None
    """Where a language model wrote the source."""
    made: tuple[StageProvenance, ...]
    origin: str | None
    """The other machine that made it, in a few words; None where this checkout did."""


class AttemptRow(Record, frozen=True, kw_only=True):
    """One submission of a coding agent; those of a client to a problem, in order, are a chain."""

    schema_version: int = SCHEMA_VERSION
    id: str
    previous: str | None
    """Id of the client's attempt at the same problem before this one."""
    client: str
    conversation: str
    order: int
    """Among all attempts of the client, from 1."""
    number: int
    """Among its attempts at this problem, from 1."""
    created: str
    """UTC, ISO 8601."""
    hardware: str
    problem: str
    problem_digest: str
    reference: DatasetSource
    """`problem.py`."""
    source: DatasetSource
    source_digest: str
    outcome: Outcome
    feedback: str
    """What the agent read: outcome, reason, notes."""
    worst_share: float | None
    """Largest error as a share of its bound."""
    checks: tuple[str, ...]
    seconds: ConfidenceInterval | None
    """Median of a call; None if it was not measured."""
    speedups: tuple[AttemptSpeedup, ...]
    estimate_bound_share: float | None


class PlatformPair(Record, frozen=True, kw_only=True):
    """The same problem on two platforms, each by its best verified variant; the rows have the sources."""

    schema_version: int = SCHEMA_VERSION
    id: str
    group: str
    kernel: str
    left: str
    """Id of a row."""
    left_platform: str
    """Backend and kind of target: `triton/cuda`."""
    left_chosen: str
    """Why this variant: `fastest`, `default` or `first`."""
    right: str
    right_platform: str
    right_chosen: str


class File(Record, frozen=True, kw_only=True):
    """A file that sources include or import."""

    schema_version: int = SCHEMA_VERSION
    digest: str
    path: str
    text: str
    licence: str | None
    """Of the declared implementation beside whose source it stands."""
