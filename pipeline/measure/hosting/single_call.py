"""Hosts a callable as a measuring child does, and lets a profiler see exactly one warm call of it.

ncu --profile-from-start off … python -m pipeline.measure.hosting.single_call REQUEST.json
"""

import contextlib
import sys
from pathlib import Path
from typing import Any

import msgspec

from pipeline.backends.devices.device import CALL_REFUSED, DeviceMeasurement
from pipeline.backends.devices.device_registry import device
from pipeline.measure.hosting.measuring_messages import Command, Go, Load, Prepare, Refused, SetUp
from pipeline.measure.hosting.measuring_process import serve
from pipeline.records.record import Record, read_record, to_json
from pipeline.records.results.profiled import Counters, Unmeasured
from pipeline.sandbox.processes.channel import Channel

WARM_SECONDS = 0.05  # of untimed calls before the one that counts
_SEED = 20_24


class SingleCallRequest(Record, frozen=True, kw_only=True):
    """What to call."""

    set_up: SetUp


def count_single_call(measurement: DeviceMeasurement, set_up: SetUp, folder: Path) -> Counters | Unmeasured:
    """Counters of one warm call, by the device's profiler; `folder` takes the files.

    The profiler empties the caches itself, because a flush of ours would be launches as well, and it does not
    see launches within a graph.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    request = folder / "request.json"
    plain = msgspec.structs.replace(set_up, flush_cache=False, cuda_graph="never")
    request.write_bytes(to_json(SingleCallRequest(set_up=plain)))
    command = (sys.executable, "-m", "pipeline.measure.hosting.single_call", str(request))
    return measurement.count_process(command, folder, flush_cache=set_up.flush_cache)


def main(arguments: list[str]) -> int:
    """Command line; returns the exit code: `CALL_REFUSED` and the reason on stderr if it refused."""
    script = _Script(read_record(Path(arguments[0]), SingleCallRequest).set_up)
    serve(script)
    if script.refused is not None:
        print(script.refused, file=sys.stderr)
        return CALL_REFUSED
    return 0


class _Script(Channel):
    """In place of a coordinator: the commands of one warm call; the profiler runs during the last one."""

    def __init__(self, set_up: SetUp) -> None:
        self.refused: str | None = None
        self._measurement = device(set_up.kind).measurement()
        self._profiler = contextlib.ExitStack()
        self._commands: list[SetUp | Command] = [
            set_up,
            Load(seed=_SEED),
            Prepare(seed=_SEED, settle_seconds=WARM_SECONDS),
            Go(calls=1),
        ]

    def receive(self, kind: Any = Any) -> Any:  # noqa: ARG002  (what it hands out is of the right kind)
        """The next command."""
        if not self._commands or self.refused is not None:
            raise EOFError
        command = self._commands.pop(0)
        if isinstance(command, Go):
            self._profiler.enter_context(self._measurement.profiled())
        return command

    def send(self, value: object) -> None:
        """An answer."""
        if not self._commands:
            self._profiler.close()
        if isinstance(value, Refused):
            self.refused = value.reason


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
