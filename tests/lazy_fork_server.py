"""A fork server that starts when a test first needs it, in a process that has computed nothing.

Its children inherit no pool of threads of the tests' process, whatever that has done by then.
"""

import functools
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.sandbox.processes.fork_server import Child, ForkServer
from tests.paths import ROOT

_PROGRAM = f"""
import socket, sys
sys.path[0] = {str(ROOT)!r}
from pipeline.sandbox.processes.fork_service import import_all, serve_forks
import_all(sys.argv[2:])
serve_forks(socket.socket(fileno=int(sys.argv[1])))
"""


class LazyForkServer(ForkServer):
    """As a `ForkServer`; the thread that starts the first child must live on."""

    def __init__(self, *, preload: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._preload = preload
        self._environment = {**os.environ, **(environment or {})}

    def start(self, target: str, **options: Any) -> Child:
        """As `ForkServer.start`."""
        return self._started.start(target, **options)

    def started(self) -> "LazyForkServer":
        """Itself, started by this thread: where it ends before the tests do, the server ends with it."""
        assert self._started
        return self

    @functools.cached_property
    def _started(self) -> ForkServer:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), *self._preload],
            env=self._environment,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        return ForkServer.at(ours)
