"""Run one stage in the warm worker: `python -m pipeline.execution.workers.submit STAGE ARGUMENTS…`.

The same as `python -m pipeline.stages.<stage> <arguments>`, without its second of imports. Starts the zygote
where there is none; in a job of a cluster `pipeline.execution.cluster.node_job` runs the stage instead.
Exits with the stage's exit code; killed, it takes the stage with it.

    --warm SPEC   before the stage: run it where the compilers of this spec's backends are imported already
    --judge SPEC  before judge: run it where its harness is imported already
    --last SPEC   before aggregate, track and report: run it where what they need is imported already
    --begin       in place of the stage: only start what would run it
"""

import contextlib
import fcntl
import hashlib
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pipeline.sandbox.processes.worker_client import START_SECONDS, branch, connect, grow, send

# Only the standard library, and little of it: this module is the cost of a job. `tempfile`, `subprocess` and
# `typing` would be a quarter of that.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

SHORT_FOLDER = "/tmp"
LONGEST_FOLDER = 50  # bytes; the path of a Unix socket may have 107, and ours adds up to 50
WARM, JUDGE, LAST, BEGIN = "--warm", "--judge", "--last", "--begin"
TRACKED, NOT_TRACKED = "pipeline.stages.track:prepare", "pipeline.report.page.rendering:prepare"
"""What the last stages of a run need."""
JUDGED = "pipeline.stages.judge:prepare"
SECRET = "_API_KEY"
"""No process that runs candidates may hold such a key (`pipeline.records.environment`)."""
KEY_HOLDER = "generate"
"""The stage that asks language models, and runs nothing."""
RUN = "KERNELMILL_RUN"  # set by pipeline.records.environment: the process of Snakemake whose job this is


def main(arguments: list[str]) -> int:
    """Send the job, wait, and return its exit code."""
    option, spec = None, Path()
    if arguments[:1] in ([WARM], [JUDGE], [LAST]) and len(arguments) > 2:
        option, spec, arguments = arguments[0], Path(arguments[1]), arguments[2:]
    if not arguments or arguments[0] in (WARM, JUDGE, LAST):
        submit = "python -m pipeline.execution.workers.submit"
        usage = f"usage: {submit} [--warm|--judge|--last SPEC] STAGE ARGUMENTS…"
        print(usage, file=sys.stderr)
        return 2
    if os.environ.get("KERNELMILL_ON_NODE"):
        # A job of a cluster: its processes end with it, so none of them may serve another one.
        command = [sys.executable, "-m", "pipeline.execution.cluster.node_job", *arguments]
        os.execve(sys.executable, command, _environment(arguments[0]))
    try:
        connection = _last(spec) if option == LAST else _branch(JUDGED) if option == JUDGE else None
        connection = connection or _connect(_backends(spec) if option == WARM else [])
    except OSError as error:
        print(f"error: {error.filename or _temporary()}: {error.strerror or error}", file=sys.stderr)
        return 1
    if connection is None:
        return 1
    return 0 if arguments == [BEGIN] else _run_stage(connection, arguments)


def _run_stage(connection: socket.socket, arguments: list[str]) -> int:
    """Have the warm worker run a stage, and wait for its end."""
    job = {
        "type": "job",
        "stage": arguments[0],
        "arguments": arguments[1:],
        "folder": str(Path.cwd()),
        "environment": _environment(arguments[0]),
    }
    with Path(os.devnull).open("rb") as nothing:
        send(connection, job, [nothing.fileno(), 1, 2])
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


def _environment(stage: str) -> dict[str, str]:
    """All variables; without the keys of endpoints for a stage that needs none."""
    return {
        name: value for name, value in os.environ.items() if stage == KEY_HOLDER or not name.endswith(SECRET)
    }


def begin(*options: str) -> object:
    """Start the zygote where there is none, with --last SPEC its branch, too, and do not wait for it.

    Returns the process that does so.
    """
    import subprocess

    if not options:
        with contextlib.suppress(OSError):  # a job will say why
            return _begin_zygote()
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline.execution.workers.submit", *options, BEGIN],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _begin_zygote() -> object:
    """The zygote's process, which holds the lock until it listens; None where there is one, or will be."""
    path = _socket_path([])
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        connection = connect(path)
        if connection is None:
            return _zygote(path, path.with_suffix(".log"), lock.fileno())
        connection.close()
        return None


def _backends(spec: Path) -> list[str]:
    """Those of a spec for a GPU: the C++ compiler is a program. A broken spec is the stage's to tell."""
    from pipeline.backends.devices.device_registry import executes_on_host  # and what that imports

    try:
        content = json.loads(spec.read_bytes())
        compiles_none = executes_on_host(content["target"]["kind"]) or content.get("recorded") is not None
        return [] if compiles_none else sorted(content["builds"])
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _last(spec: Path) -> socket.socket | None:
    """A connection to where the last stages run; None where that does not start, which costs only time."""
    try:
        tracked = json.loads(spec.read_bytes())["tracking"]["enabled"]
    except (OSError, ValueError, KeyError, TypeError):  # the stage's to tell
        tracked = False
    return _branch(TRACKED if tracked else NOT_TRACKED)


def _branch(prepare: str) -> socket.socket | None:
    """A connection to the zygote's branch with these imports; None where that does not start."""
    with contextlib.suppress(OSError):
        base = _connect([])
        if base is not None:
            base.close()  # it listens; one that says nothing would keep it waiting
            return branch(_socket_path([]), prepare, _environment(""))
    return None


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


def _socket_path(backends: Sequence[str]) -> Path:
    """One per user, checkout, interpreter, environment of the libraries, state of the code, backends, and
    step of a Slurm job."""
    folder = _temporary() / f"kernelmill-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    code = _stamps(Path(__file__).parents[2])
    # Slurm ends what a job step started when that ends, so another step needs a worker of its own.
    step = [os.environ.get(name, "") for name in ("SLURM_JOB_ID", "SLURM_STEP_ID")]
    place = [str(Path.cwd()), sys.executable, os.environ.get("PYTHONPATH", "")]
    identity = "\0".join([*place, *code, *backends, *step])
    return folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.sock"


def _temporary() -> Path:
    """$TMPDIR where it has a short name and can be written."""
    folder = Path(os.environ.get("TMPDIR") or SHORT_FOLDER).absolute()
    usable = len(os.fsencode(folder)) <= LONGEST_FOLDER and os.access(folder, os.W_OK)
    return folder if usable else Path(SHORT_FOLDER)


def _stamps(folder: Path) -> list[str]:
    """Every module of the project with the time of its last change."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(parent, name)  # noqa: PTH118  (some hundred of them, in every job)
                found.append(f"{path} {os.stat(path).st_mtime_ns}")  # noqa: PTH116
    return sorted(found)


def _connect(backends: Sequence[str]) -> socket.socket | None:
    """Connect to the zygote, starting it first where needed; None where it cannot be started."""
    path = _socket_path(backends)
    connection = connect(path)
    if connection is not None:
        return connection
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = connect(path)
        if connection is not None:
            return connection
        log = path.with_suffix(".log")
        connection = _grown(path, backends, log) if backends else _started(path, log)
        if connection is None:
            said = log.read_text(errors="replace").strip().splitlines()
            reason = f" ({said[-1].strip()})" if said else ""
            print(f"error: the warm worker did not start{reason}; its log: {log}", file=sys.stderr)
        return connection


def _started(path: Path, log: Path) -> socket.socket | None:
    """Start a zygote and connect to it."""
    zygote = _zygote(path, log)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and zygote.poll() is None:
        connection = connect(path)
        if connection is not None:
            return connection
        time.sleep(0.01)
    return None


def _zygote(path: Path, log: Path, *lock: int) -> "subprocess.Popen[bytes]":
    """Its process, which closes the descriptor of the `lock` once it listens."""
    import subprocess

    with log.open("wb") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "pipeline.execution.workers.zygote", str(path), *map(str, lock)],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            env=_environment(""),
            pass_fds=lock,
        )


def _grown(path: Path, backends: Sequence[str], log: Path) -> socket.socket | None:
    """Have the zygote grow a branch and connect to that."""
    base = _connect([])
    if base is None:
        return None
    with log.open("wb") as stream:
        grow(base, {"backends": list(backends), "path": str(path)}, stream.fileno())
    return connect(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
