"""Runs one check in a process of its own: a check and its setting in, its line out, however the process ends.

python -m pipeline.execution.device_check.check_processes MODULE:FUNCTION SETTING.json ANSWER.json
"""

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from pipeline.backends.devices.device import NotAvailable
from pipeline.execution.device_check.check_report import CheckAnswer, CheckedLine, checked_line
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.environment import untranslated
from pipeline.records.errors import KernelmillError, StoreError
from pipeline.records.record import Record, read_record, to_json

CLEAN_UP_SECONDS = 3.0  # for supervisors to end what a killed check has started
LOG_BYTES = 64 << 10


class CheckSetting(Record, frozen=True, kw_only=True):
    """What a check is about."""

    kind: DeviceKind
    device: str | None = None
    """Name of the product; None: there is none of the kind here."""
    architecture: str | None = None
    absence: str = ""
    """Why there is none."""
    folder: str
    """For temporary files; the checks of one run share it."""
    subject: str = ""
    """Which of its cases a check is to try: a mechanism, a backend, a candidate."""


class Check(NamedTuple):
    """One line to be."""

    name: str
    function: str
    """`module:function`: a CheckSetting in, a CheckAnswer out."""
    seconds: float
    """After which its process is killed."""
    subject: str = ""
    alone: bool = False
    """Whether it measures, so that no other check may use the machine meanwhile."""


def run_check(check: Check, setting: CheckSetting) -> CheckedLine:
    """Run a check to its end, or to its limit."""
    folder = Path(setting.folder) / "".join(letter if letter.isalnum() else "_" for letter in check.name)
    folder.mkdir(parents=True, exist_ok=True)
    asked, answered, log = folder / "setting.json", folder / "answer.json", folder / "log.txt"
    asked.write_bytes(to_json(setting))
    command = [sys.executable, "-m", __spec__.name, check.function, str(asked), str(answered)]
    started = time.monotonic()
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=untranslated(),
            start_new_session=True,
        )
    code = _wait(process, check.seconds)
    seconds = time.monotonic() - started
    text = log.read_bytes()[-LOG_BYTES:].decode(errors="replace")
    return checked_line(check.name, _answer(code, answered, check, text), seconds=seconds, log=text)


def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    """Its exit code; None if it was killed. What it started ends with it."""
    code: int | None = None
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        # Supervisors notice that their owner is gone, and end what has left its session.
        time.sleep(CLEAN_UP_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.poll() is None:
            process.kill()
            process.wait()
    return code


def _answer(code: int | None, answered: Path, check: Check, log: str) -> CheckAnswer:
    """The answer; a process that ended without one has failed."""
    if code is None:
        return CheckAnswer(status="failed", detail=f"not finished after {check.seconds:g} s, and killed")
    with contextlib.suppress(StoreError):
        if code == 0:
            return read_record(answered, CheckAnswer)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    words = f": {lines[-1]}" if lines else ""
    how = (
        f"ended with code {code}" if code >= 0 else f"was ended by signal {-code} ({signal.strsignal(-code)})"
    )
    return CheckAnswer(status="failed", detail=f"its process {how}{words}")


def main(arguments: list[str]) -> int:
    """Command line of the process; what cannot be had here is absent, every other exception a failure."""
    place, asked, answered = arguments
    module, _, function = place.partition(":")
    setting = read_record(Path(asked), CheckSetting)
    try:
        answer: CheckAnswer = getattr(importlib.import_module(module), function)(setting)
    except NotAvailable as error:
        answer = CheckAnswer(status="absent", detail=str(error))
    except KernelmillError as error:
        answer = CheckAnswer(status="failed", detail=str(error))
    Path(answered).write_bytes(to_json(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
