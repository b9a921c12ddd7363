"""What a bundle says of itself: experiment, machine, how each task ended, and the digest of every file."""

import hashlib

from pipeline.execution.chain.stage_processes import FinishedStage
from pipeline.records.provenance import Origin
from pipeline.records.record import Record, digest_bytes, to_json

SCHEMA = 1
"""Raise it when what a bundle holds changes: an older reader then says so instead of guessing."""
MANIFEST = "manifest.json"
PLAN = "plan.json"
SPEC = "aggregate.json"
"""The AggregateSpec of the tasks that came to their end."""


class TaskEnd(Record, frozen=True, kw_only=True):
    """How a task of the plan ended there."""

    name: str
    """kernel x workload x hardware x optimization"""
    missing: str | None
    """None where all its stages came to their end; else what is missing and why."""
    outcomes: dict[str, dict[str, int]]
    """Stage -> outcome -> how many variants."""


class BundledFile(Record, frozen=True, kw_only=True):
    """A file of the bundle."""

    name: str
    sha256: str
    size: int
    """Bytes."""
    cut_from: int | None = None
    """Bytes of the original where the middle was cut out; None where it is whole."""


class LeftOut(Record, frozen=True, kw_only=True):
    """A file that stayed on the machine where it was made."""

    name: str
    sha256: str
    size: int
    reason: str


class BundleManifest(Record, frozen=True, kw_only=True):
    """First file of a bundle."""

    schema_version: int = SCHEMA
    experiment: str
    description: str
    overrides: tuple[str, ...]
    created: str
    """UTC, ISO 8601."""
    git: str | None
    device: str
    environment: dict[str, str]
    tasks: tuple[TaskEnd, ...]
    jobs: tuple[FinishedStage, ...]
    files: tuple[BundledFile, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def identity(self) -> str:
        """Identity of the bundle."""
        return digest_bytes(to_json(self))

    @property
    def origin(self) -> Origin:
        """The machine, for the records that are made of this bundle."""
        return Origin(
            bundle=self.identity, created=self.created, device=self.device, environment=self.environment
        )


def sha256(content: bytes) -> str:
    """Checksum of a file, in full."""
    return hashlib.sha256(content).hexdigest()
