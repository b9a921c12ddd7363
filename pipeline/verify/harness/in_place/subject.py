"""What a trial is about: one variant, and how its process runs."""

from typing import Literal

from pipeline.backends.backend import CompileJob
from pipeline.records.compiled import Compiled
from pipeline.records.record import Record
from pipeline.records.settings import Verify


class Subject(Record, frozen=True, kw_only=True):
    """What is tried, and how its process runs."""

    job: CompileJob
    compiled: Compiled
    root: str
    """The repository."""
    folder: str
    """The store entry that compile left."""
    device: Literal["cpu", "cuda"]
    threads: int
    """Of every third case; the others run on one, because threads that wait for each other on busy cores are
    what costs most."""
    repeat: Literal["every", "first"]
    """Which cases are called on equal inputs again."""
    deterministic: bool
    settings: Verify
