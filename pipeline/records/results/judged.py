"""Candidates from elsewhere: what there is to judge, and what judge found out about each."""

from typing import Literal

from pipeline.records.configuration.hardware import Target
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.planning.specs import Build
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record

FRAGILE = "fragile: "
"""How a note begins that says what fails beyond the inputs that a problem shows."""
VIEWS = "inputs that are not contiguous are read as if they were"
"""How such a note goes on that says so of views."""
JudgedWhere = Literal["host", "interpreter", "emulator", "device"]


class CandidateFile(Record, frozen=True, kw_only=True):
    """One file of `solutions/`."""

    name: str
    path: str
    digest: str
    """Of the file and of the packages that it imports."""
    languages: tuple[str, ...] = ()
    """Backends whose language it names, or a package that it imports."""
    failure: Failure | None = None
    """Why it is not even tried."""


class ProblemFolder(Record, frozen=True, kw_only=True):
    """One problem with its candidates."""

    name: str
    path: str
    """Of its `problem.py`."""
    digest: str
    """Of all its files but the candidates: a problem may import or read its neighbours."""
    candidates: tuple[CandidateFile, ...]
    failure: Failure | None = None
    """Why none of its candidates can be judged."""


class JudgeSpec(Record, frozen=True, kw_only=True):
    """judge: one problem and its candidates -> verdicts."""

    problem: ProblemFolder
    hardware: str
    """Name of the target that candidates are judged for."""
    target: Target
    device_present: bool
    device: str
    """Model of what candidates run on here."""
    settings: Verify
    build: Build


class VerdictsSpec(Record, frozen=True, kw_only=True):
    """verdicts: all judged problems of a folder -> one table."""

    folder: str
    keys: tuple[str, ...]
    """Of judge, in the order of the rows."""
    timed: tuple[str, ...] | None = None
    """Of timing, likewise; None where nothing is timed."""


class Verdict(Record, frozen=True, kw_only=True):
    """One candidate: a row of `verdicts.csv`."""

    problem: str
    solution: str
    id: str = ""
    """Of its store entry, for `kernelmill judge --repeat`; empty where it was not tried."""
    outcome: Outcome
    reason: str = ""
    """One line; empty where it passed."""
    share: float | None = None
    """Largest error as a share of its bound; None where no value was compared."""
    checks: tuple[str, ...] = ()
    """Names of the checks that judged at least one call, in order."""
    where: JudgedWhere | None = None
    """Where it ran; None where it did not."""
    compiled_for: str | None = None
    """Name of the absent hardware target that its kernels were compiled for."""
    device: str = ""
    """What it ran on: the model of the processor or of the GPU."""
    calls: int = 0
    """How many were made, the one that failed included."""
    seconds: float = 0.0
    """Wall time of judging it, its own and the judge's."""
    peak_memory: int | None = None
    """Bytes of its process that were resident at most, what it shares with the judge included."""
    notes: tuple[str, ...] = ()
    """What a reader should know: refused sizes, weak checks, PyTorch's part of the work, a declared bound."""


class JudgeRecord(Record, frozen=True, kw_only=True):
    """One candidate's stored verdict; its name and its problem's are those of the first time."""

    verdict: Verdict
    entry: str
    conditions: tuple[str, ...]
    """Labels of the conditions that it was called under, with their seeds."""
    isolation: tuple[str, ...]
    """What confined its process."""
    provenance: Provenance


class JudgeOutput(Record, frozen=True, kw_only=True):
    """What judge writes for one problem."""

    key: str
    verdicts: tuple[Verdict, ...]
