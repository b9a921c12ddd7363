"""Python imports this when it starts with this folder on `PYTHONPATH`: warm workers are forked, not started.

A warm worker takes two seconds for its imports, and each checkout of a test has its own. Here it is a fork of
a process that has imported the libraries (`tests.warm_commands`), and this process waits for its end.
"""

import contextlib
import os
import sys

WORKER = ["-m", "pipeline.execution.workers.zygote"]


def _forked(address: str) -> None:
    import json
    import socket

    request = {"arguments": sys.orig_argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}  # noqa: PTH109
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(address)
        socket.send_fds(connection, [json.dumps(request).encode()], [1, 2])
        connection.recv(1)  # nothing comes: the worker has the other end as long as it lives
    os._exit(0)


if sys.orig_argv[1:3] == WORKER and "KERNELMILL_TEST_WORKERS" in os.environ:
    with contextlib.suppress(OSError):  # started as usual, then
        _forked(os.environ["KERNELMILL_TEST_WORKERS"])
