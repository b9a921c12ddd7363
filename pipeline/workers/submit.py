"""Run one stage in the warm worker: `python -m pipeline.workers.submit <stage> <arguments of the stage>`.

The same as `python -m pipeline.stages.<stage> <arguments>`, without its second of imports. Starts the zygote
where there is none. Exits with the stage's exit code; killed, it takes the stage with it.
"""

import fcntl
import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Only the standard library, and little of it: this module is the cost of a job.

LONGEST_FOLDER = 50  # bytes; the path of a Unix socket may have 107, and ours adds up to 50
START_SECONDS = 120.0  # importing torch from a cold disk
RUN = "KERNELMILL_RUN"  # set by pipeline.environment: the process of Snakemake whose job this is


def main(arguments: list[str]) -> int:
    """Send the job, wait, and return its exit code."""
    if not arguments:
        print("usage: python -m pipeline.workers.submit STAGE ARGUMENTS…", file=sys.stderr)
        return 2
    job = {
        "stage": arguments[0],
        "arguments": arguments[1:],
        "folder": str(Path.cwd()),
        "environment": dict(os.environ),
    }
    try:
        connection = _connect(_socket_path())
    except OSError as error:
        print(f"error: {error.filename or tempfile.gettempdir()}: {error.strerror or error}", file=sys.stderr)
        return 1
    if connection is None:
        return 1
    with Path(os.devnull).open("rb") as nothing:
        message = json.dumps(job).encode() + b"\n"
        sent = socket.send_fds(connection, [message], [nothing.fileno(), 1, 2])
        connection.sendall(message[sent:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        report = _receive_all(connection, _run())
    except KeyboardInterrupt:
        return 130
    except OSError:
        report = b""
    if not report:
        print("error: the warm worker was killed while the job ran: run again", file=sys.stderr)
        return 137
    code = int(json.loads(report)["code"])
    if code < 0:
        print(f"error: {job['stage']} was killed by signal {-code}: run again", file=sys.stderr)
    return code if code >= 0 else 128 - code


def _receive_all(connection: socket.socket, run: int | None) -> bytes:
    """The report; empty where the worker went away. Ends this process where Snakemake was killed."""
    waiting = [connection.fileno(), *([] if run is None else [run])]
    parts: list[bytes] = []
    while True:
        readable, _, _ = select.select(waiting, [], [])
        if connection.fileno() not in readable:
            sys.exit(137)  # the keeper sees it, and ends the job
        part = connection.recv(65536)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _run() -> int | None:
    """A descriptor that becomes readable when Snakemake ends; None where the platform has none."""
    number = os.environ.get(RUN, "")
    if not number.isdigit() or not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(int(number))
    except ProcessLookupError:
        sys.exit(137)
    except OSError:
        return None


def _socket_path() -> Path:
    """One per user, checkout, interpreter and environment of the libraries."""
    folder = Path(tempfile.gettempdir())
    if len(os.fsencode(folder)) > LONGEST_FOLDER:
        folder = Path("/tmp")
    folder /= f"kernelmill-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    code = "".join(str(path.stat().st_mtime_ns) for path in sorted(Path(__file__).parent.glob("*.py")))
    identity = "\0".join([str(Path.cwd()), sys.executable, os.environ.get("PYTHONPATH", ""), code])
    return folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.sock"


def _connect(path: Path) -> socket.socket | None:
    """Connect to the zygote, starting it first where needed; None where it cannot be started."""
    connection = _try(path)
    if connection is not None:
        return connection
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = _try(path)
        if connection is not None:
            return connection
        log = path.with_suffix(".log")
        with log.open("wb") as stream:
            zygote = subprocess.Popen(
                [sys.executable, "-m", "pipeline.workers.zygote", str(path)],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and zygote.poll() is None:
            connection = _try(path)
            if connection is not None:
                return connection
            time.sleep(0.01)
        said = log.read_text(errors="replace").strip().splitlines()
        reason = f" ({said[-1].strip()})" if said else ""
        print(f"error: the warm worker did not start{reason}; its log: {log}", file=sys.stderr)
        return None


def _try(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
