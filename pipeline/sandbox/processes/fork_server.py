"""Run untrusted or fragile code in forked children with limits, from a process that stays clean.

Start the `ForkServer` before the process computes: a child must not inherit anything that its owner knows
(expected values, for example). The server is a copy of the process as it was at that moment, so what was
imported then costs a child nothing.
"""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from pipeline.records.errors import WorkerError
from pipeline.records.record import from_json, to_json
from pipeline.sandbox.confinement import system_calls
from pipeline.sandbox.processes.channel import Channel
from pipeline.sandbox.processes.fork_service import (
    ForkRequest,
    import_all,
    serve_forks,
    shared_descriptor,
)
from pipeline.sandbox.processes.supervisor import KILL, Exit, Limits
from pipeline.sandbox.processes.worker_client import NO_DRIVER

__all__ = ["Channel", "Child", "ChildEnded", "Exit", "ForkServer", "Limits", "shared_path"]

UNEXPECTED = "unexpected answer"  # how the detail of an Exit begins where a child broke the protocol
_GRACE_SECONDS = 5.0  # for a child to end after its channel closed, and for a supervisor to report


def shared_path(number: int) -> str:
    """Where a child finds the descriptor of this number among those that `ForkServer.start` shares with it.

    It cannot open `/proc/<owner>/fd/...` itself where its owner is concealed.
    """
    return f"/proc/self/fd/{shared_descriptor(number)}"


class ChildEnded(Exception):
    """The child is gone; `exit` says how."""

    def __init__(self, ended: Exit) -> None:
        super().__init__(f"{ended.kind}: {ended.detail}")
        self.exit = ended


class Child:
    """A running child, seen from its owner."""

    def __init__(self, channel: Channel, supervisor: socket.socket) -> None:
        self._channel = channel
        self._supervisor = supervisor
        self._exit: Exit | None = None

    def send(self, value: object) -> None:
        """Send one plain value or record; ChildEnded where it is gone."""
        try:
            self._channel.send(value)
        except OSError:
            raise ChildEnded(self._wait(_GRACE_SECONDS)) from None

    def receive(self, seconds: float, kind: Any = Any, *, more: Callable[[], float] | None = None) -> Any:
        """Wait for one value; after `seconds` the child is killed and ChildEnded says `timeout`.

        `more` is asked before that for how many further seconds it may have, until it grants none. A message
        that is not of the kind ends the child as well: it does not keep to the protocol.
        """
        try:
            left = seconds
            while not self._channel.poll(left):
                left = 0.0 if more is None else more()
                if left <= 0.0:
                    self.kill()
                    self._exit = Exit(kind="timeout", code=-9, detail=f"no answer within {seconds:g} s")
                    raise ChildEnded(self._exit)
            return self._channel.receive(kind)
        except (EOFError, OSError):
            raise ChildEnded(self._wait(_GRACE_SECONDS)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self.kill()
            self._exit = Exit(kind="error", code=1, detail=f"{UNEXPECTED}: {error}")
            raise ChildEnded(self._exit) from None

    def stop(self) -> Exit:
        """Close the channel, give the child a moment to end, then kill it."""
        with contextlib.suppress(OSError):
            self._channel.close()
        return self._wait(_GRACE_SECONDS)

    def kill(self) -> Exit:
        """Kill the child and all that it started."""
        if self._exit is None:
            with contextlib.suppress(OSError):
                self._supervisor.sendall(KILL)
        return self._wait(_GRACE_SECONDS)

    def _wait(self, seconds: float) -> Exit:
        """The supervisor's report; a child that does not end in time is killed first."""
        if self._exit is not None:
            return self._exit
        self._supervisor.settimeout(seconds)
        try:
            report = self._supervisor.recv(65536)
        except TimeoutError:
            with contextlib.suppress(OSError):
                self._supervisor.sendall(KILL)
            report = self._last_report()
        except OSError:
            report = b""
        if report:
            self._exit = from_json(report, Exit)
        else:
            self._exit = Exit(kind="crashed", code=-9, detail="its supervisor was killed")
        with contextlib.suppress(OSError):
            self._channel.close()
        self._supervisor.close()
        return self._exit

    def _last_report(self) -> bytes:
        with contextlib.suppress(OSError):
            self._supervisor.settimeout(_GRACE_SECONDS)
            return self._supervisor.recv(65536)
        return b""


class ForkServer:
    """Forks clean children on request; a context manager, safe to use from several threads.

    `preload` names modules that the server imports for all its children, under the added `environment`:
    the owner keeps neither. From then on the owner's memory cannot be read by other processes of its user,
    because it will hold what its children must not know.
    """

    def __init__(self, *, preload: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = os.fork()
        if process == 0:
            ours.close()
            os.environ.update({**NO_DRIVER, **(environment or {})})
            import_all(preload)
            serve_forks(theirs)
        theirs.close()
        self._own(ours, process)

    @classmethod
    def at(cls, control: socket.socket) -> Self:
        """The server that another process has begun at the other end of this socket (`serve_forks`)."""
        server = cls.__new__(cls)
        server._own(control, None)
        return server

    def _own(self, control: socket.socket, process: int | None) -> None:
        self._lock = threading.Lock()
        self._control = control
        self._process = process
        system_calls.conceal()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(  # noqa: PLR0913  (each of them is a property of one process)
        self,
        target: str,
        *,
        limits: Limits,
        log: Path,
        environment: Mapping[str, str] | None = None,
        scratch: Path | None = None,
        shared: Sequence[int] = (),
    ) -> Child:
        """Fork a child that calls `module:function` with its end of a `Channel`.

        stdout and stderr go to `log`; `environment` is added to the environment; `scratch` becomes the
        working directory; the child finds the descriptors `shared`, in order, at `shared_path(0)` and so on.
        Raises WorkerError where the server is gone.
        """
        request = ForkRequest(
            target=target,
            limits=limits,
            log=str(log.absolute()),
            environment=dict(environment or {}),
            scratch=None if scratch is None else str(scratch.absolute()),
        )
        ours, theirs = socket.socketpair()
        supervisor, kept = socket.socketpair()
        try:
            with self._lock:
                descriptors = [theirs.fileno(), kept.fileno(), *shared]
                socket.send_fds(self._control, [to_json(request)], descriptors)
        except OSError as error:
            raise WorkerError(f"the fork server is gone: {error.strerror or error}") from error
        finally:
            theirs.close()
            kept.close()
        return Child(Channel(ours.detach()), supervisor)

    def close(self) -> None:
        """End the server; children that still run are killed by their supervisors as their owners let go."""
        self._control.close()
        if self._process is None:  # another's child, which ends as this one would
            return
        deadline = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < deadline:
            if os.waitpid(self._process, os.WNOHANG)[0]:
                return
            time.sleep(0.002)
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
