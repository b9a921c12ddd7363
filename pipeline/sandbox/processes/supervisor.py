"""Supervise one forked child: limits, a kill when its owner goes away, and how it ended.

The supervisor is a process of its own between the owner and the child. It holds the owner's socket: when that
closes, for whatever reason, the child and everything it started are killed. When the child ends, its `Exit`
goes back over the socket. So no process outlives the run that wanted it, also after `kill -9`.
"""

import contextlib
import ctypes
import faulthandler
import os
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NoReturn

import msgspec

from pipeline.records.record import Record, to_json
from pipeline.sandbox.confinement import system_calls
from pipeline.sandbox.processes import descendants

ExitKind = Literal["ok", "error", "timeout", "crashed", "out_of_memory", "output_limit", "process_limit"]

POLL_SECONDS = 0.02  # how often memory is looked at; an allocation loop needs about a second to hurt
COUNT_EVERY = 5  # looks at memory until processes are counted, which takes longer
COUNT_SECONDS = 1.0
"""How often processes are counted where memory is not looked at. A look takes a core for 0.1 to 0.2 ms: 50 a
second for each of three processes that are timed in turn were some per cents of every batch."""
OUT_OF_MEMORY_CODE = 77  # exit code of a child that met MemoryError
KILL = b"kill"  # what an owner sends to end its child
_REPORT_MEMORY = 64 << 20  # bytes beyond its ceiling that a starved child gets for its last words
_OVERSHOOT = (
    512 << 20
)  # bytes beyond the limit where allocations fail: it takes longer than a look to use them
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class Limits(Record, frozen=True, kw_only=True):
    """What one child may use."""

    seconds: float
    """Wall time from start to end."""
    memory: int | None = None
    """Bytes beyond what its parent has; None: no limit."""
    reserves: bool = False
    """Whether it may reserve any amount of address space, as drivers do: only its own resident memory counts
    then."""
    output: int = 16 << 20
    """Bytes of any file that it writes, its log included."""
    processes: int = 64
    """Processes below it that may live at once, its own not counted."""


class Exit(Record, frozen=True, kw_only=True):
    """How a child ended."""

    kind: ExitKind
    code: int
    detail: str
    peak_memory: int = 0
    """Bytes that were resident at most, those shared with its parent included; 0 where that is not known."""


def die_with_parent(by: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel to send this process a signal when its parent dies (Linux; elsewhere nothing)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, by)


def supervise(
    run: Callable[[], None], owner: socket.socket, limits: Limits | None, log: Path | None
) -> NoReturn:
    """Fork, run `run` in the child, supervise it, report its `Exit` on `owner`, and end this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    system_calls.conceal()
    supervisor = os.getpid()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        owner.close()
        die_with_parent()
        if os.getppid() != supervisor:
            os._exit(1)
        _become_child(run, limits, log)
    outcome = _supervise(child, owner, limits, started)
    descendants.kill(child)
    code, peak_memory = _reap(child)
    ended = msgspec.structs.replace(_classify(outcome, code, limits, log), peak_memory=peak_memory)
    with contextlib.suppress(OSError):
        owner.sendall(to_json(ended))
    os._exit(0)


def _become_child(run: Callable[[], None], limits: Limits | None, log: Path | None) -> NoReturn:
    """Runs in the forked child: limits, output, then the work; never returns into the parent's code."""
    code = 1
    try:
        os.setsid()
        system_calls.reveal()  # only the supervisor's memory is concealed
        faulthandler.disable()  # where the parent had it, it would write to the parent's stderr
        if log is not None:
            _redirect(log)
        renew_streams()
        if limits is not None:
            _set_limits(limits)
        run()
        code = 0
    except SystemExit as request:
        code = request.code if isinstance(request.code, int) else int(request.code is not None)
    except BaseException as error:
        # torch reports a failed allocation as a RuntimeError.
        starved = isinstance(error, MemoryError) or "can't allocate memory" in str(error)
        code = OUT_OF_MEMORY_CODE if starved else 1
        with contextlib.suppress(BaseException):
            _lift_memory_limit()
            traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _redirect(log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    os.close(empty)


def renew_streams() -> None:
    """Fresh objects on descriptors 1 and 2: the inherited ones may hold unwritten text of the parent."""
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115


def _set_limits(limits: Limits) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Python ignores the signal and would see EFBIG; C code that ignores write errors would go on for ever.
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    _, allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    output = limits.output if allowed == resource.RLIM_INFINITY else min(limits.output, allowed)
    resource.setrlimit(resource.RLIMIT_FSIZE, (output, output))
    if limits.memory is not None and not limits.reserves:
        # C code that ignores a failed allocation crashes like any other: the supervisor should be first.
        ceiling = _memory("self", limits) + limits.memory + _OVERSHOOT
        resource.setrlimit(resource.RLIMIT_AS, (ceiling, ceiling + _REPORT_MEMORY))


def _lift_memory_limit() -> None:
    """Printing a traceback needs memory, which a starved child has not."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _memory(process: int | str, limits: Limits | None) -> int:
    """Bytes of a process, as its limits count them; 0 where the platform does not tell."""
    resident = limits is not None and limits.reserves
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1 if resident else 0])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * resource.getpagesize()


def _supervise(child: int, owner: socket.socket, limits: Limits | None, started: float) -> ExitKind:
    """Wait until the child ends or must end; `ok` here means: it ended by itself."""
    base = _memory(child, limits)
    most = None if limits is None or limits.memory is None else base + limits.memory
    poller = select.poll()
    descriptor = os.pidfd_open(child)
    poller.register(descriptor, select.POLLIN)
    poller.register(owner, select.POLLIN | select.POLLHUP)
    looks = 0
    pause, count_every = (POLL_SECONDS, COUNT_EVERY) if most is not None else (COUNT_SECONDS, 1)
    while True:
        left = pause
        if limits is not None:
            left = min(pause, limits.seconds - (time.monotonic() - started))
            if left <= 0:
                return "timeout"
        ready = {number for number, _ in poller.poll(left * 1000)}
        if descriptor in ready:
            return "ok"
        if owner.fileno() in ready:
            return "crashed"  # nobody is left to read it, or the owner said so
        if most is not None and _memory(child, limits) > most:
            return "out_of_memory"
        looks += 1
        if limits is not None and looks % count_every == 0 and descendants.count(child) > limits.processes:
            return "process_limit"


def _reap(child: int) -> tuple[int, int]:
    """Its exit code, and the bytes that were resident at most."""
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), 1024 * usage.ru_maxrss


def _classify(outcome: ExitKind, code: int, limits: Limits | None, log: Path | None) -> Exit:
    """Turn what was seen into an `Exit`; a signal number is a negative code."""
    if limits is not None:
        details: dict[ExitKind, str] = {
            "timeout": f"not finished after {limits.seconds:g} s",
            "process_limit": f"more than {limits.processes} processes at once",
            "output_limit": f"wrote more than {limits.output} bytes",
        }
        kind: ExitKind = "output_limit" if code == -signal.SIGXFSZ else outcome
        if kind in details:
            return Exit(kind=kind, code=code, detail=details[kind])
    last = _last_line(log)
    if code == 0:
        return Exit(kind="ok", code=0, detail="")
    memory = limits.memory if limits is not None else None
    starved = outcome == "out_of_memory" or code == OUT_OF_MEMORY_CODE or "bad_alloc" in last
    if starved and memory is not None:
        detail = f"asked for more than {memory} bytes. {last}".strip()
        return Exit(kind="out_of_memory", code=code, detail=detail)
    if code < 0:
        return Exit(kind="crashed", code=code, detail=f"{signal.Signals(-code).name}. {last}".strip(". "))
    return Exit(kind="error", code=code, detail=last or f"exit code {code}")


def _last_line(log: Path | None) -> str:
    """The last line of the log that says something, cut to a table's width."""
    if log is None or not log.is_file():
        return ""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 4096))
        lines = stream.read().decode(errors="replace").splitlines()
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")
