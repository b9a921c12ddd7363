"""The warm worker: a process with torch and the stages imported that forks one process per job.

Importing torch takes more than a second, a fork some milliseconds. One zygote serves one checkout, one
interpreter and one state of the project's code, all three of which are in its address
(`pipeline.execution.workers.submit`), so it cannot run stale code. It ends by itself when idle.

A branch is a zygote that was forked from this one and has more imported: Triton, which is either a compiler
or an interpreter from its import on, and so must not be imported for all jobs; or what `torch.compile` needs,
which would make every fork of a candidate dearer.

In: one request per connection as JSON (`StageJob` or `Branch`, with stdin, stdout, stderr; `Forks`, with the
server's end of its socket). Out: the job's `Exit`.
"""

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn, TextIO

import msgspec

from pipeline.backends.registry import backend
from pipeline.records.environment import forget_compiler_settings, is_job_of, worker_seconds
from pipeline.records.record import Record
from pipeline.sandbox.processes.fork_service import serve_forks
from pipeline.sandbox.processes.supervisor import renew_streams, supervise
from pipeline.stages.table import preload

IDLE_SECONDS = 300.0  # from one run to the next, with an edit in between
IDLE_SECONDS_AT_LEAST = 2.0  # from its start to the first job
PRELOAD = ("numpy", "torch", *preload())
"""What most jobs need. Not triton, nor what imports it; nor the libraries of the tables and the report, which
one job of a run needs: the last three stages import them where they use them."""


class StageJob(Record, frozen=True, kw_only=True, tag="job"):
    """One command line of one stage."""

    stage: str
    arguments: tuple[str, ...]
    folder: str
    environment: dict[str, str]


class Branch(Record, frozen=True, kw_only=True, tag="branch"):
    """A zygote with the compilers of these backends imported, which listens at a path of its own."""

    backends: tuple[str, ...]
    path: str
    prepare: str | None = None
    """A function, `module:function`, that imports what it is for,"""
    environment: dict[str, str] | None = None
    """with these variables, which libraries read at their import; None: those of this zygote."""


class Forks(Record, frozen=True, kw_only=True, tag="forks"):
    """A fork server (`pipeline.sandbox.processes.fork_server`) for a job, with this zygote's imports."""

    folder: str
    environment: dict[str, str]


def serve(
    path: Path,
    modules: Sequence[str],
    starter: socket.socket | TextIO | None = None,
    *,
    trunk: Path | None = None,
) -> None:
    """Import, then listen on a Unix socket until idle; `starter` is closed once it listens.

    `trunk` is where the zygote listens that this one is a branch of: branches for its jobs grow from there.
    """
    gc.disable()  # a fifth of the time that torch's import takes: there is next to nothing to collect
    for name in modules:
        importlib.import_module(name)
    gc.freeze()  # a collection in a job would copy every page that holds one of these objects
    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Bound under another name first: a process that finds the socket can connect at once.
    early = path.with_suffix(f".{os.getpid()}")
    listener.bind(str(early))
    listener.listen(128)
    early.rename(path)
    if starter is not None:
        starter.close()
    children: set[int] = set()
    last, idle = time.monotonic(), max(worker_seconds(IDLE_SECONDS), IDLE_SECONDS_AT_LEAST)
    while children or time.monotonic() - last < idle:
        readable, _, _ = select.select([listener], [], [], 1.0)
        if readable:
            connection, _ = listener.accept()
            child = _fork(connection, listener, trunk or path)
            if child is not None:
                children.add(child)
        if children:
            last = time.monotonic()
        children -= _ended(children)
        if not path.exists():  # its folder was cleaned: no process can reach it any more
            break
    with contextlib.suppress(OSError):
        path.unlink()


def _ended(children: set[int]) -> set[int]:
    return {child for child in children if os.waitpid(child, os.WNOHANG)[0]}


def _fork(connection: socket.socket, listener: socket.socket, trunk: Path) -> int | None:
    """The keeper of a new job, or a branch; None where the client went away while it sent its request."""
    try:
        request, descriptors = _receive(connection)
    except (OSError, EOFError, msgspec.DecodeError):
        connection.close()
        return None
    child = os.fork()
    if child == 0:
        listener.close()
        try:
            match request:
                case Branch():
                    _grow(request, descriptors, connection, trunk)
                case Forks():
                    connection.close()
                    os.chdir(request.folder)
                    _replace_environment(request.environment)
                    serve_forks(socket.socket(fileno=descriptors[0]))
                case StageJob():
                    _keep_job(request, descriptors, connection, trunk)
        finally:
            os._exit(1)
    connection.close()
    for descriptor in descriptors:
        os.close(descriptor)
    return child


def _receive(connection: socket.socket) -> tuple[StageJob | Branch | Forks, list[int]]:
    connection.settimeout(10.0)
    message, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not message.endswith(b"\n"):  # a large environment arrives in parts
        part = connection.recv(1 << 20)
        if not part:
            raise EOFError("the client went away while it sent its request")
        message += part
    connection.settimeout(None)
    return msgspec.json.decode(message, type=StageJob | Branch | Forks), list(descriptors)


def _grow(branch: Branch, descriptors: list[int], connection: socket.socket, trunk: Path) -> NoReturn:
    """Become a zygote of its own; the client learns from the connection's end that it listens, or failed."""
    os.setsid()
    _take_streams(descriptors)
    try:
        if branch.environment is not None:
            _replace_environment(branch.environment)
        forget_compiler_settings()  # as a job does before it imports a compiler
        modules = [module for name in branch.backends for module in backend(name).preload]
        if branch.prepare is not None:
            module, _, name = branch.prepare.partition(":")
            getattr(importlib.import_module(module), name)()
        serve(Path(branch.path), modules, connection, trunk=trunk)
    except BaseException:
        traceback.print_exc()
        raise
    os._exit(0)


def _take_streams(descriptors: list[int]) -> None:
    for target, descriptor in enumerate(descriptors):
        os.dup2(descriptor, target)
        os.close(descriptor)
    renew_streams()


def _keep_job(job: StageJob, descriptors: list[int], connection: socket.socket, worker: Path) -> NoReturn:
    def run() -> None:
        _take_streams(descriptors)
        os.chdir(job.folder)
        _replace_environment(job.environment)
        is_job_of(worker)
        sys.argv = [f"pipeline.stages.{job.stage}", *job.arguments]
        sys.exit(importlib.import_module(f"pipeline.stages.{job.stage}").main(list(job.arguments)))

    supervise(run, connection, None, None)


def _replace_environment(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), PRELOAD, os.fdopen(int(sys.argv[2]), "w") if sys.argv[2:] else None)
