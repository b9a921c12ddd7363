"""Runs Python command lines in processes of their own that find the libraries imported.

Each is a fork of one process that has imported what Hydra and Snakemake need, and nothing of this project: a
command takes that from its own working directory and `PYTHONPATH`, as `python -m` does.
"""

import functools
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

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


def _become(request: dict, stdout: int, stderr: int) -> list[str]:
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
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()
    todo = _serve(socket.socket(fileno=int(sys.argv[1])))
    if todo[0] == "-m":
        sys.argv = todo[1:]
        runpy.run_module(todo[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = todo
        runpy.run_path(todo[0], run_name="__main__")
