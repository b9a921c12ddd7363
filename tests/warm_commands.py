"""Runs Python command lines in processes of their own that find the libraries imported.

Each is a fork of one process that has imported what Hydra and Snakemake need, and nothing of this project: a
command takes that from its own working directory and `PYTHONPATH`, as `python -m` does. A second such process
is forked into warm workers (`tests/warm_site`).
"""

import fcntl
import functools
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LIBRARIES = (
    "click",
    "grimp",
    "hydra",
    "hydra._internal.hydra",
    "hydra.compose",
    "msgspec",
    "numpy",
    "optuna",
    "optuna.samplers",
    "optuna.storages",
    "snakemake.api",
    "snakemake.cli",
    "snakemake.scheduling.greedy",
    "snakemake.workflow",
    "sqlalchemy.orm",
    "yaml",
)
WORKERS = ("numpy", "torch", "mlflow", "mlflow.store.tracking.sqlalchemy_store", "pandas", "pyarrow.parquet")
"""What a warm worker and its branches spend most of their start on."""
WARM_SITE = Path(__file__).parent / "warm_site"


def run(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float = 200.0,
    one_stream: bool = False,
) -> subprocess.CompletedProcess[str]:
    """What `python ARGUMENTS…` prints and returns; the first argument is -m or a file.

    With `one_stream` what it prints on stderr stands in stdout, too, in order.
    """
    control = _control()
    with tempfile.TemporaryFile("a+") as stdout, tempfile.TemporaryFile("a+") as stderr:
        request = json.dumps({"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)})
        control.settimeout(timeout)
        socket.send_fds(
            control, [request.encode()], [stdout.fileno(), (stdout if one_stream else stderr).fileno()]
        )
        process = int(control.recv(64))
        try:
            code = int(control.recv(64))
        except TimeoutError:
            os.kill(process, 9)
            control.recv(64)
            raise subprocess.TimeoutExpired(list(arguments), timeout) from None
        for stream in (stdout, stderr):
            stream.seek(0)
        return subprocess.CompletedProcess(list(arguments), code, stdout.read(), stderr.read())


@functools.cache
def _control() -> socket.socket:
    """The connection to this process's server, which ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.Popen(
        [sys.executable, str(Path(__file__)), str(theirs.fileno())],
        env=environment,
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
    )
    theirs.close()
    return ours


def workers_address() -> str:
    """Where the process listens that warm workers are forked from; one for a session of tests."""
    folder = Path(os.environ["XDG_CACHE_HOME"])
    address = folder / "workers.sock"
    with (folder / "workers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            server = subprocess.Popen(
                [sys.executable, str(Path(__file__)), str(address)],
                env=os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            while not address.exists() and server.poll() is None:  # without it, workers start as usual
                time.sleep(0.05)
    return str(address)


def _serve_workers(address: Path) -> list[str]:
    """Fork for each connection until the session's folder is gone; returns in the process that is to run."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(str(address))
    listener.listen(64)
    listener.settimeout(2.0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for workers
    while address.exists():
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 2)
        if message and os.fork() == 0:
            listener.close()
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.set_inheritable(connection.detach(), False)  # open until this process ends
            return _become(json.loads(message), *descriptors)
        connection.close()
        for descriptor in descriptors:
            os.close(descriptor)
    os._exit(0)


def _serve(control: socket.socket) -> list[str]:
    """Fork for each request; returns the arguments in the process that is to run them."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, 1 << 20, 2)
        if not message:
            os._exit(0)
        process = os.fork()
        if process == 0:
            control.close()
            return _become(json.loads(message), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(str(process).encode())
        control.send(str(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])).encode())


def _become(request: dict[str, Any], stdout: int, stderr: int) -> list[str]:
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.close(stdout)
    os.close(stderr)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    arguments: list[str] = request["arguments"]
    first = request["cwd"] if arguments[0] == "-m" else str(Path(arguments[0]).parent)
    added = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [first, *filter(None, added), *sys.path[1:]]
    return arguments


if __name__ == "__main__":
    for_workers = not sys.argv[1].isdigit()
    for name in WORKERS if for_workers else LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    todo = (
        _serve_workers(Path(sys.argv[1])) if for_workers else _serve(socket.socket(fileno=int(sys.argv[1])))
    )
    if todo[0] == "-m":
        sys.argv = todo[1:]
        runpy.run_module(todo[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = todo
        runpy.run_path(todo[0], run_name="__main__")
