"""Requests to a warm worker (`pipeline.execution.workers.zygote`): its address in, a connection out."""

import contextlib
import fcntl
import hashlib
import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

# Only the standard library: clients import this for every job.

_PAUSES = (0.0, 0.5)  # seconds before each attempt
START_SECONDS = 120.0  # importing torch from a cold disk
NO_DRIVER = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""If a library asks whether there is a GPU, torch must not open the driver: no fork survives that."""
READ_AT_IMPORT = ("TORCH", "MLFLOW")
"""How variables begin that torch's compiler, and MLflow, read when they are imported."""


def connect(path: Path) -> socket.socket | None:
    """A connection; None where nobody listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


def send(connection: socket.socket, request: Mapping[str, object], descriptors: Sequence[int]) -> None:
    """One request with the descriptors that it needs."""
    message = json.dumps(request).encode() + b"\n"
    sent = socket.send_fds(connection, [message], descriptors)
    connection.sendall(message[sent:])


def grow(base: socket.socket, branch: Mapping[str, object], log: int) -> None:
    """Have a worker grow a branch that writes to descriptor `log`; returns when that listens, or failed."""
    with Path(os.devnull).open("rb") as nothing:
        streams = [nothing.fileno(), log, log]
        send(base, {"type": "branch", **branch}, streams)
    base.settimeout(START_SECONDS)
    with contextlib.suppress(OSError):
        while base.recv(65536):  # nothing comes: it ends
            pass


def fork_server(
    worker: Path, prepare: str, environment: Mapping[str, str] | None = None
) -> socket.socket | None:
    """Our end of a `pipeline.sandbox.processes.fork_server` in a branch of the worker; None if there is none.

    `prepare` names a function, `module:function`, that imports what the server's children need;
    `environment` is added to that of this process. Who needs another one names another function: servers of
    one name share a branch.
    """
    variables = {**os.environ, **NO_DRIVER, **(environment or {})}
    for pause in _PAUSES:  # a branch may end just now
        time.sleep(pause)
        with contextlib.suppress(OSError):
            connection = branch(worker, prepare, variables)
            if connection is not None:
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                request = {"type": "forks", "folder": str(Path.cwd()), "environment": variables}
                with theirs, connection:
                    send(connection, request, [theirs.fileno()])
                return ours
    return None


def branch(worker: Path, prepare: str, environment: Mapping[str, str]) -> socket.socket | None:
    """A connection to the branch that `prepare` names; it grows, with this environment, where there is none.

    None where it cannot: the worker is gone, or what it should import failed.
    """
    read = sorted(f"{name}={text}" for name, text in environment.items() if name.startswith(READ_AT_IMPORT))
    identity = "\0".join([worker.stem, prepare, *read])
    path = worker.with_name(f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.sock")
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = connect(path)
        base = connect(worker) if connection is None else None
        if base is not None:
            wanted = {"backends": [], "prepare": prepare, "path": str(path), "environment": dict(environment)}
            with base, path.with_suffix(".log").open("wb") as log:
                grow(base, wanted, log.fileno())
            connection = connect(path)
    return connection
