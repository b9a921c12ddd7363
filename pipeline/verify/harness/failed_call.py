"""The call that decided a verdict and those before it, as the verdict's store entry keeps them."""

from pathlib import Path

from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.configuration.stage_settings import Verify
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record, read_record, to_json
from pipeline.records.results.judged import JudgedWhere
from pipeline.verify.harness.planning.trial_conditions import MadeCall

_FILE = "failed_call.json"


class FailedCall(Record, frozen=True, kw_only=True):
    """The call that decided a verdict, and all that is needed to make it again."""

    problem: str
    """Absolute path of `problem.py`."""
    candidate: str
    """Absolute path of the candidate's file."""
    where: JudgedWhere
    device: DeviceKind
    limits: dict[str, int]
    settings: Verify
    failure: Failure
    calls: tuple[MadeCall, ...]
    """All calls of the trial up to the one that failed; empty: it failed while it was imported."""

    @property
    def shows_in_result(self) -> bool:
        """Whether a call without observers and gradients can show the fault."""
        if self.failure.outcome is Outcome.TAMPERED:
            return False
        return not (self.calls and self.calls[-1].backward)

    def write(self, folder: Path) -> None:
        """Into the verdict's store entry."""
        (folder / _FILE).write_bytes(to_json(self))


def read_failed_call(folder: Path) -> FailedCall:
    """From a store entry; StoreError if another version wrote it."""
    return read_record(folder / _FILE, FailedCall)
