"""The process that forks children. In: requests through a socket. Out: a child with its supervisor for each.

It was forked from its owner before that computed anything: see `pipeline.sandbox.processes.fork_server`.
"""

import contextlib
import gc
import importlib
import os
import resource
import signal
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from pipeline.records.record import Record
from pipeline.sandbox.confinement import system_calls
from pipeline.sandbox.processes.channel import Channel
from pipeline.sandbox.processes.supervisor import Limits, die_with_parent, supervise

DESCRIPTORS_AT_MOST = 16
"""Of one request."""


class ForkRequest(Record, frozen=True, kw_only=True):
    """A child that is wanted."""

    target: str
    limits: Limits
    log: str
    environment: dict[str, str]
    scratch: str | None


def shared_descriptor(number: int) -> int:
    """Far above those in use, and below the usual limit, which the child inherits."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = 1024 if soft == resource.RLIM_INFINITY else min(soft, 1024)
    return highest - 1 - number


def import_all(modules: Sequence[str]) -> None:
    """Import what can be imported; what cannot will fail in the child that needs it, with a log."""
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def serve_forks(control: socket.socket) -> NoReturn:
    """Be a fork server: prepare this process, which is one for that alone, and fork in a thread of its own.

    GNU OpenMP keeps its team with the thread that first ran a parallel region. Where that was the owner's, a
    child forked from the same thread would wait for ever for a team that was not copied; one forked from a
    thread that never ran any makes a team of its own.
    """
    die_with_parent()
    system_calls.conceal()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()  # a collection in a child would copy every page that holds an object of the server
    forks = threading.Thread(target=_fork_on_request, args=(control,))
    forks.start()
    forks.join()
    os._exit(1)


def _fork_on_request(control: socket.socket) -> NoReturn:
    """The server's loop: one supervisor per request."""
    while True:
        try:
            message, descriptors, _, _ = socket.recv_fds(control, 1 << 20, DESCRIPTORS_AT_MOST)
        except OSError:
            os._exit(1)
        if not message:
            os._exit(0)
        process: int | None = None
        with contextlib.suppress(OSError):  # who asked finds a channel that is closed, and looks why
            process = os.fork()
        if process == 0:
            try:
                control.close()
                _start_child(msgspec.json.decode(message, type=ForkRequest), *descriptors)
            finally:  # whatever goes wrong: never back into the code of the owner, of which this is a copy
                os._exit(1)
        for descriptor in descriptors:
            os.close(descriptor)


def _start_child(request: ForkRequest, channel: int, owner: int, *shared: int) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    places = [shared_descriptor(number) for number in range(len(shared))]
    for descriptor, place in zip(shared, places, strict=True):
        os.dup2(descriptor, place)
    _disconnect({0, 1, 2, channel, owner, *places})

    def run() -> None:
        os.environ.update(request.environment)
        if request.scratch is not None:
            os.chdir(request.scratch)
        module, _, function = request.target.partition(":")
        getattr(importlib.import_module(module), function)(Channel(channel))

    connection = socket.socket(fileno=owner)
    supervise(run, connection, request.limits, Path(request.log))


def _disconnect(kept: set[int]) -> None:
    """Point every other inherited descriptor at nothing: a candidate could write to what its owner has open.

    They are not closed, because objects that own them would close whatever takes their numbers.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in [int(entry.name) for entry in Path("/dev/fd").iterdir()]:
        if descriptor not in kept and descriptor != nothing:
            with contextlib.suppress(OSError):  # the one that listed them is closed already
                os.fstat(descriptor)
                os.dup2(nothing, descriptor)
