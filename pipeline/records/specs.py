"""What each stage reads: one spec record per stage, and its key.

A spec holds all that its stage's result depends on and nothing else. The key of a stage is the digest of its
spec and of its parent's key, so tasks that differ only in what a later stage reads share the earlier work.
"""

from pipeline.records.hardware import BackendKind, Quantity, Target
from pipeline.records.kernel import Cost, Implementation, Tolerance
from pipeline.records.optimization import Optimization
from pipeline.records.problem import Problem
from pipeline.records.record import Record, digest
from pipeline.records.search import Search
from pipeline.records.settings import Profile, Tracking, Verify


class Build(Record, frozen=True, kw_only=True):
    """What a result depends on beside its inputs."""

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
    build: Build
    feedback: str | None = None
    """Searches of several rounds: digest of the later stages' specs, because their results come back."""


class CompileSpec(Record, frozen=True, kw_only=True):
    """compile: variants -> binaries and static facts."""

    parent: str
    problem: Problem
    implementations: dict[str, Implementation]
    target: Target
    builds: dict[str, Build]
    """Backend -> what its artifacts depend on."""


class VerifySpec(Record, frozen=True, kw_only=True):
    """verify: compiled variants -> verdicts."""

    parent: str
    problem: Problem
    implementations: dict[str, Implementation]
    reference: str
    reference_digest: str
    """Of the module that holds the reference and the magnitude."""
    tolerance: Tolerance
    deterministic: bool
    special_values: bool
    target: Target
    device_present: bool
    settings: Verify
    builds: dict[str, Build]


class ProfileSpec(Record, frozen=True, kw_only=True):
    """profile: verified variants -> measurements."""

    parent: str
    problem: Problem
    implementations: dict[str, Implementation]
    reference: str
    reference_digest: str
    cost: Cost
    target: Target
    device_present: bool
    device: str
    """Fingerprint of the device that measures (model, cores, caches); `absent` where it is not here."""
    settings: Profile
    builds: dict[str, Build]


class TaskRow(Record, frozen=True, kw_only=True):
    """One task as the analysis sees it: names, and where its results are."""

    task: str
    kernel: str
    workload: str
    hardware: str
    kind: BackendKind
    device_present: bool
    optimization: str
    search: str
    rounds: int
    dtype: str
    dimensions: dict[str, int]
    flops: float
    bytes: float
    unit: str
    """`matrix` or `vector`: which peak bounds it."""
    peaks: dict[str, Quantity]
    generate: str
    """Key of the generate stage, and so on."""
    compile: str
    verify: str
    profile: str


class AggregateSpec(Record, frozen=True, kw_only=True):
    """aggregate, report and track: all results of an experiment -> tables, winners, report, MLflow."""

    experiment: str
    description: str
    tasks: tuple[TaskRow, ...]
    pruned: tuple[str, ...]
    """Cells of the grid that were left out, each with its reason."""
    tracking: Tracking
    build: Build


def key_of(name: str, spec: Record) -> str:
    """Path-safe key of a stage: readable name, then the digest of the whole spec."""
    return f"{name}-{digest(spec)}"
