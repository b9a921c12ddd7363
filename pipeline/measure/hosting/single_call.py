"""Hosts a callable as a measuring child does, and lets a profiler see exactly one warm call of it.

ncu --profile-from-start off … python -m pipeline.measure.hosting.single_call REQUEST.json
"""

import sys
from pathlib import Path
from typing import Any

from pipeline.measure.hosting.measuring_messages import Command, Go, Load, Prepare, Refused, SetUp
from pipeline.measure.hosting.measuring_process import serve
from pipeline.records.record import Record, read_record
from pipeline.sandbox.processes.channel import Channel

REFUSED = 3
WARM_SECONDS = 0.05  # of untimed calls before the one that counts
_SEED = 20_24


class SingleCallRequest(Record, frozen=True, kw_only=True):
    """What to call."""

    set_up: SetUp


def main(arguments: list[str]) -> int:
    """Command line; returns the exit code, `REFUSED` with the reason on stderr where the callable refused."""
    script = _Script(read_record(Path(arguments[0]), SingleCallRequest).set_up)
    serve(script)
    if script.refused is not None:
        print(script.refused, file=sys.stderr)
        return REFUSED
    return 0


class _Script(Channel):
    """In place of a coordinator: the commands of one warm call; the profiler runs during the last one."""

    def __init__(self, set_up: SetUp) -> None:
        self.refused: str | None = None
        self._profiler = _profiler if set_up.kind != "cpu" else _no_profiler
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
            self._profiler("start")
        return command

    def send(self, value: object) -> None:
        """An answer."""
        if not self._commands:
            self._profiler("stop")
        if isinstance(value, Refused):
            self.refused = value.reason


def _profiler(what: str) -> None:
    """cudaProfilerStart and cudaProfilerStop: what ncu watches for."""
    import torch

    torch.cuda.synchronize()
    runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
    getattr(runtime, "cudaProfilerStart" if what == "start" else "cudaProfilerStop")()


def _no_profiler(what: str) -> None:
    """A processor has none; the call is made all the same."""


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
