"""What a device check found: one line per check, and the file that is brought home."""

import re
import tempfile
from pathlib import Path
from typing import Literal

from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.provenance import Provenance
from pipeline.records.record import Record, to_json
from pipeline.store.atomic import write_atomic
from pipeline.store.privacy import private_paths, without_host, without_paths

SCHEMA = 1
"""Raise it when the fields of the file change."""
Status = Literal["ok", "failed", "absent"]
LOG_LETTERS = 4000  # of the end of a check's log
DETAIL_LETTERS = 500
_NAME_WIDTH = 32


class CheckAnswer(Record, frozen=True, kw_only=True):
    """What a check answers."""

    status: Status
    detail: str
    """One line."""
    figures: dict[str, str] = {}
    """What was read or measured, by name, with units."""


class CheckedLine(Record, frozen=True, kw_only=True):
    """One line of the table."""

    name: str
    status: Status
    """`absent`: this machine lacks what is checked; that is no failure."""
    detail: str
    """One line: what works, or why it does not."""
    seconds: float
    """Wall time of the check's process."""
    figures: dict[str, str]
    """As in `CheckAnswer`."""
    log: str
    """The end of what the check printed."""


class DeviceCheck(Record, frozen=True, kw_only=True):
    """The file `device_check.json`."""

    schema_version: int = SCHEMA
    provenance: Provenance
    kind: DeviceKind
    """Kind of device that was looked for."""
    device: str | None
    """Name of the product; None: this machine has none of the kind."""
    architecture: str | None
    """`sm_90`"""
    lines: tuple[CheckedLine, ...]

    @property
    def failed(self) -> bool:
        """Whether any check failed."""
        return any(line.status == "failed" for line in self.lines)


def write_report(path: Path, check: DeviceCheck) -> None:
    """Write the file whole or not at all.

    Raises
    ------
    StoreError
        No space, no permission.
    """
    write_atomic(path, to_json(check))


def checked_line(name: str, answer: CheckAnswer, *, seconds: float, log: str) -> CheckedLine:
    """A line without paths and the name of this machine."""
    return CheckedLine(
        name=name,
        status=answer.status,
        detail=anonymous(" ".join(answer.detail.split()))[:DETAIL_LETTERS],
        seconds=round(seconds, 2),
        figures={figure: anonymous(value) for figure, value in answer.figures.items()},
        log=anonymous(log)[-LOG_LETTERS:],
    )


def anonymous(text: str) -> str:
    """A text without what says where it was made."""
    paths = {
        **private_paths(Path.cwd()),
        str(Path(tempfile.gettempdir()).resolve()): "<tmp>",
        tempfile.gettempdir(): "<tmp>",
    }
    longest_first = dict(sorted(paths.items(), key=lambda item: -len(item[0])))
    cleaned = without_host(without_paths(text.encode(), longest_first)).decode(errors="replace")
    return re.sub(r"\x1b\[[0-9;]*m", "", cleaned)


def line_text(line: CheckedLine) -> str:
    """Name, status, seconds, detail."""
    return f"{line.name:<{_NAME_WIDTH}}{line.status:<8}{line.seconds:>6.1f} s  {line.detail}"


def verdict_text(check: DeviceCheck) -> str:
    """How many lines ended how."""
    counts = {status: [line.status for line in check.lines].count(status) for status in _ORDER}
    seconds = sum(line.seconds for line in check.lines)
    return f"{', '.join(f'{count} {status}' for status, count in counts.items())} · {seconds:.0f} s"


_ORDER: tuple[Status, ...] = ("ok", "failed", "absent")
