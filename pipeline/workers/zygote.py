"""The warm worker: a process with torch imported that forks one process per job.

Importing torch takes more than a second, a fork some milliseconds. One zygote serves one checkout and one
interpreter; the first job starts it (`pipeline.workers.submit`) and it ends by itself when idle. It only
imports libraries, never this project's stages, so it cannot run stale code.

In: one request per connection (`Job` as JSON, with the job's stdin, stdout, stderr). Out: its `Exit`.
"""

import contextlib
import importlib
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import NoReturn

import msgspec

from pipeline.records.record import Record
from pipeline.workers.keeper import keep, renew_streams

IDLE_SECONDS = 60.0
PRELOAD = ("numpy", "torch")
# Not triton, nor what imports it: it is either a compiler or an interpreter from its import on.


class Job(Record, frozen=True, kw_only=True):
    """One command line of one stage."""

    stage: str
    arguments: tuple[str, ...]
    folder: str
    environment: dict[str, str]


def serve(path: Path) -> None:
    """Listen on a Unix socket until idle."""
    for name in PRELOAD:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Bound under another name first: whoever finds the socket can connect at once.
    early = path.with_suffix(f".{os.getpid()}")
    listener.bind(str(early))
    listener.listen(128)
    early.rename(path)
    keepers: set[int] = set()
    last = time.monotonic()
    while keepers or time.monotonic() - last < IDLE_SECONDS:
        readable, _, _ = select.select([listener], [], [], 1.0)
        if readable:
            connection, _ = listener.accept()
            keeper = _fork_job(connection, listener)
            if keeper is not None:
                keepers.add(keeper)
        if keepers:
            last = time.monotonic()
        keepers -= _ended(keepers)
        if not path.exists():  # its folder was cleaned: nobody can reach it any more
            break
    with contextlib.suppress(OSError):
        path.unlink()


def _ended(keepers: set[int]) -> set[int]:
    return {keeper for keeper in keepers if os.waitpid(keeper, os.WNOHANG)[0]}


def _fork_job(connection: socket.socket, listener: socket.socket) -> int | None:
    """The keeper of a new job; None where the client went away while it sent it."""
    try:
        job, descriptors = _receive(connection)
    except (OSError, EOFError, msgspec.DecodeError):
        connection.close()
        return None
    keeper = os.fork()
    if keeper == 0:
        listener.close()
        try:
            _keep_job(job, descriptors, connection)
        finally:
            os._exit(1)
    connection.close()
    for descriptor in descriptors:
        os.close(descriptor)
    return keeper


def _receive(connection: socket.socket) -> tuple[Job, list[int]]:
    connection.settimeout(10.0)
    message, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not message.endswith(b"\n"):  # a large environment arrives in parts
        part = connection.recv(1 << 20)
        if not part:
            raise EOFError("the client went away while it sent its job")
        message += part
    connection.settimeout(None)
    return msgspec.json.decode(message, type=Job), list(descriptors)


def _keep_job(job: Job, descriptors: list[int], connection: socket.socket) -> NoReturn:
    def run() -> None:
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
            os.close(descriptor)
        renew_streams()
        os.chdir(job.folder)
        os.environ.clear()
        os.environ.update(job.environment)
        sys.argv = [f"pipeline.stages.{job.stage}", *job.arguments]
        sys.exit(importlib.import_module(f"pipeline.stages.{job.stage}").main(list(job.arguments)))

    keep(run, connection, None, None)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
