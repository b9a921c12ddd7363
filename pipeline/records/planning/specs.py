"""What each stage reads: one spec record per stage, and its key.

A spec holds all that its stage's result depends on and nothing else. The key of a stage is the digest of its
spec and of its parent's key, so tasks that differ only in what a later stage reads share the earlier work.
"""

from pipeline.records.configuration.hardware import DeviceKind, Quantity, Target
from pipeline.records.configuration.kernel import Cost, GradientOf, Implementation, Tolerance, Vendor
from pipeline.records.configuration.optimization import Optimization
from pipeline.records.configuration.pruning import Bounded, Prune
from pipeline.records.configuration.search_settings import Search, Start
from pipeline.records.configuration.stage_settings import Profile, Tracking, Verify
from pipeline.records.planning.problem import Problem
from pipeline.records.provenance import Origin
from pipeline.records.record import Record, digest
from pipeline.records.results.mutated import Mutation
from pipeline.records.search.brief import Brief
from pipeline.records.search.recorded_space import RecordedFile


class Build(Record, frozen=True, kw_only=True):
    """What a result depends on in addition to its inputs."""

    code: str
    """Digest of the stage's module and of everything in the project that it imports."""
    toolchain: dict[str, str]


class GenerateSpec(Record, frozen=True, kw_only=True):
    """generate: spaces and search -> variants."""

    kernel: str
    implementations: dict[str, Implementation]
    """Those that can run on the target's kind, narrowed by the optimization."""
    source_digests: dict[str, str]
    """Implementation -> digest of its source and of what it includes."""
    problem: Problem
    limits: dict[str, int]
    optimization: Optimization
    search: Search
    starts: tuple[Start, ...] = ()
    """Winners of other tasks that the search begins with, the most similar task first."""
    build: Build
    files: dict[str, str] = {}
    """Of the search's folder: name -> digest."""
    reference: str | None = None
    """With the search `inductor`, which compiles it; None for a backward kernel: it has none of its own."""
    reference_digest: str | None = None
    target: Target | None = None
    """Beside the reference: what it is compiled for."""
    feedback: str | None = None
    """Searches of several rounds: digest of the later stages' specs, because their results come back."""
    brief: Brief | None = None
    """Where a language model writes: what it is told; where a search reads diagnoses: what they rest on."""


class CompileSpec(Record, frozen=True, kw_only=True):
    """compile: variants -> binaries and static facts."""

    parent: str
    problem: Problem
    implementations: dict[str, Implementation]
    target: Target
    builds: dict[str, Build]
    """Backend -> what its artifacts depend on."""
    recorded: RecordedFile | None = None
    """Replayed in place of compiling."""


class VerifySpec(Record, frozen=True, kw_only=True):
    """verify: compiled variants -> verdicts."""

    parent: str
    problem: Problem
    implementations: dict[str, Implementation]
    reference: str
    reference_digest: str
    """Of the module that holds the reference and the magnitude."""
    gradient_of: GradientOf | None = None
    tolerance: Tolerance
    deterministic: bool
    special_values: bool
    linear: bool = False
    target: Target
    device_present: bool
    settings: Verify
    prune: Prune | None = None
    """What the search does not have verified and measured, by the facts of its binary."""
    pruning: str | None = None
    """Digest of the code that decides it; verdicts do not depend on it."""
    bounded: Bounded | None = None
    """Where the analytic bound is among the grounds."""
    builds: dict[str, Build]
    recorded: RecordedFile | None = None
    """Replayed in place of running anything."""


class MutateTask(Record, frozen=True, kw_only=True):
    """A kernel on one workload and target."""

    space: Implementation
    """With all values of its tunables: mutants meet the whole space, whatever the optimization leaves."""
    limits: dict[str, int]
    """What its constraints read of the target."""
    verify: VerifySpec
    """How they are judged; its settings give way to each of the presets."""


class MutateSpec(Record, frozen=True, kw_only=True):
    """mutate: an implementation of a kernel -> which mutants of its sources the gate kills."""

    kernel: str
    implementation: str
    source_digest: str
    """Of its sources."""
    tasks: tuple[MutateTask, ...]
    presets: tuple[Verify, ...]
    """The first one decides."""
    settings: Mutation

    @property
    def declared(self) -> Implementation:
        """The implementation."""
        return self.tasks[0].verify.implementations[self.implementation]

    @property
    def backend(self) -> str:
        """Its backend."""
        return self.declared.backend


class ProfileSpec(Record, frozen=True, kw_only=True):
    """profile: verified variants -> measurements."""

    parent: str
    problem: Problem
    implementations: dict[str, Implementation]
    reference: str
    reference_digest: str
    gradient_of: GradientOf | None = None
    vendors: dict[str, Vendor] = {}
    """Of the target's kind; empty where none of them is asked for."""
    vendors_digest: str | None = None
    """Of their modules."""
    cost: Cost
    target: Target
    device_present: bool
    device: str
    """Fingerprint of the device that measures (model, cores, caches); `absent` where it is not here."""
    settings: Profile
    screening: tuple[float, ...] = ()
    """Round -> share of the measurement that the search wants there; empty: every round measures fully."""
    shapes: tuple[dict[str, int], ...] = ()
    """Round -> dimensions that the search measures on there; empty: the workload's in every round."""
    builds: dict[str, Build]
    recorded: RecordedFile | None = None
    """Replayed in place of measuring."""


class TaskRow(Record, frozen=True, kw_only=True):
    """One task as the analysis sees it: names, and where its results are."""

    task: str
    kernel: str
    workload: str
    hardware: str
    kind: DeviceKind
    device_present: bool
    optimization: str
    search: str
    rounds: int
    dtype: str
    dimensions: dict[str, int]
    flops: float | None
    """This and the next are absent where the kernel has no formula."""
    bytes: float | None
    read: float | None = None
    """Of these bytes, what the inputs take, by the sizes of the tensors."""
    unit: str
    """`matrix` or `vector`: which peak bounds it."""
    peaks: dict[str, Quantity]
    limits: dict[str, int] = {}
    """Of the target: `sm_count`, `threads_per_sm`, `vector_bits`, …"""
    generate: str
    """Key of the generate stage, and so on."""
    compile: str
    verify: str
    profile: str
    recorded: str | None = None
    """Whose recorded measurements are replayed: device, file, digest; None where they are made."""
    preset: str | None = None
    """Of verify: how strictly its variants are judged; None where nothing is judged here."""
    editing_only: bool = False
    """Whether that preset is for editing loops."""
    varied: tuple[str, ...] = ()
    """Overrides that tell it from tasks of the same names in its sweep; in short in the workload's name."""


class MutationRow(Record, frozen=True, kw_only=True):
    """The mutants of one implementation as the analysis sees them."""

    kernel: str
    implementation: str
    key: str
    """Of the stage mutate."""
    explained: dict[str, str]
    """Mutant -> why it is known to survive."""


class AggregateSpec(Record, frozen=True, kw_only=True):
    """aggregate, report and track: all results of an experiment -> tables, winners, report, MLflow."""

    experiment: str
    description: str
    tasks: tuple[TaskRow, ...]
    pruned: tuple[str, ...]
    """Cells of the grid that were left out, each with its reason."""
    mutations: tuple[MutationRow, ...] = ()
    """Those that the report shows."""
    tracking: Tracking
    build: Build
    origin: Origin | None = None
    """The other machine that made the results; None where this checkout did."""


def key_of(name: str, spec: Record) -> str:
    """Path-safe key of a stage: readable name, then the digest of the whole spec."""
    return f"{name}-{digest(spec)}"
