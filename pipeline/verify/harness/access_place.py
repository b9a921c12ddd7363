"""Names the place of an illegal access or of a crash: the call is made again under the device's tool.

In: how a trial failed, and how its last call is made again. Out: the failure with what the tool found first;
as it was if there is no tool, or if it finds nothing in time.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from pipeline.backends.devices.device_registry import device
from pipeline.backends.devices.driver_errors import meaning
from pipeline.records.configuration.hardware import DeviceKind
from pipeline.records.errors import WorkerError
from pipeline.records.outcome import Failure
from pipeline.sandbox.processes.fork_server import ChildEnded
from pipeline.store.temporary import scratch_folder
from pipeline.verify.harness.session import ProcessEnded, Session

_LOG = "accesses.txt"


def with_place(
    failure: Failure | None,
    kind: DeviceKind,
    session: Callable[..., Session],
    repeat: Callable[[Session], object],
    *,
    crashed: bool,
) -> Failure | None:
    """`session` starts one with its `log`, `scratch` and `checker`; `repeat` loads, and makes the call."""
    if failure is None or not (crashed or meaning(failure.reason) == "illegal address"):
        return failure
    with scratch_folder() as scratch:
        checker = device(kind).memory_checker(scratch / _LOG)
        if checker is None:
            return failure
        with (
            contextlib.suppress(ProcessEnded, ChildEnded, WorkerError),
            session(log=scratch / "log.txt", scratch=scratch, checker=checker) as again,
        ):
            repeat(again)
        place = checker.place(_written(scratch / _LOG))
    if place is None:
        return failure
    return msgspec.structs.replace(failure, reason=f"{failure.reason}: {place}")


def _written(log: Path) -> str:
    return log.read_text(errors="replace") if log.is_file() else ""
