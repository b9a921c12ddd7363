"""What work needs of its machine, looked at when a result may be the machine's fault and not the kernel's.

In: folders that are written to; how a child ended, or what a failure says. Out: nothing where all is well, or
an error that says what is short, so that the machine's trouble is never kept as a kernel's outcome.
"""

import contextlib
import errno
import os
import re
import resource
import signal
import tempfile
import threading
from pathlib import Path
from typing import NoReturn

from pipeline.records.errors import REMEDIES, StoreError, WorkerError, explained
from pipeline.records.outcome import Failure, Outcome
from pipeline.sandbox.processes.supervisor import Exit

ROOM = 32 << 20  # bytes: what one variant's files and its compiler's temporary ones may take
PROCESSES = 8  # a compiler driver with its stages, a candidate with its supervisor
THREADS_A_CORE = 2  # a candidate's own, and those of torch in addition
LOG_END = 4096  # bytes of a log that are looked through
DESCRIPTORS = 48  # a child's channels, its log, what its compiler opens

OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that a process seldom sends itself: a user, a scheduler or the kernel out of memory does."""
_COUNTING = threading.Lock()
_TROUBLE = re.compile(
    "|".join(
        (
            *(re.escape(os.strerror(number)) for number in REMEDIES if number != 1),
            "Killed",
            r"(?:code|signal|status):? -?(?:9|15|137|143)\b",
            "its supervisor was killed",
            "terminated program",
            "can't start new thread",
            "unable to open output file",
        )
    )
)


def from_outside(ended: Exit) -> bool:
    """Whether something other than the child's own code may have ended it."""
    return ended.kind == "crashed" and -ended.code in OUTSIDE


def is_doubtful(result: object, folder: Path) -> bool:
    """Whether a failure may be the machine's: its text names a shortage, or a kill from outside.

    Of a crash the end of its log in `folder` counts as well: OpenMP writes there that it gets no thread, and
    exits. A candidate that says so is tried once more, and nothing else.
    """
    if not isinstance(result, Failure):
        return False
    if result.outcome is not Outcome.CRASHED:
        return _TROUBLE.search(result.reason) is not None
    if any(number.name in result.reason for number in OUTSIDE):
        return True
    return _TROUBLE.search(f"{result.reason}\n{_end_of_log(result, folder)}") is not None


def _end_of_log(failure: Failure, folder: Path) -> str:
    if failure.log is None:
        return ""
    try:
        with (folder / failure.log).open("rb") as stream:
            stream.seek(-min(LOG_END, os.fstat(stream.fileno()).st_size), os.SEEK_END)
            return stream.read(LOG_END).decode(errors="replace")
    except OSError:
        return ""


def require(*folders: Path) -> None:
    """See that there is room in these folders and for temporary files, and that processes can be started.

    Raises
    ------
    StoreError
        A folder is nearly full, or cannot be written.
    WorkerError
        Processes or descriptors are short.
    """
    for folder in (*folders, Path(tempfile.gettempdir())):
        _require_room(folder)
    _require_descriptors()
    _require_processes()


def _require_room(folder: Path) -> None:
    try:
        state = os.statvfs(folder)
        descriptor, name = tempfile.mkstemp(dir=folder)
        os.close(descriptor)
        Path(name).unlink()
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {explained(error)}") from error
    free = state.f_bavail * state.f_frsize
    if free < ROOM:
        raise StoreError(
            f"{folder}: No space left on device ({free >> 20} MB free, {ROOM >> 20} MB wanted); "
            "free space and run again"
        )


def _require_descriptors() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = sum(1 for _ in Path("/dev/fd").iterdir())
    if soft != resource.RLIM_INFINITY and soft - used < DESCRIPTORS:
        raise WorkerError(
            f"Too many open files ({used} of {soft}); raise the limit (ulimit -n) and run again"
        )


def _require_processes() -> None:
    """Start a few that only wait, and as many threads as OpenMP and torch would in one of them; end them.

    One caller at a time: a process that another thread forks meanwhile would hold the end of this one's pipe
    open, whose processes would then wait for each other's for ever.
    """
    with _COUNTING:
        _start_and_end_processes()


def _start_and_end_processes() -> None:
    reading, writing = os.pipe()
    started: list[int] = []
    over = threading.Event()
    try:
        for _ in range(PROCESSES):
            process = os.fork()
            if process == 0:
                _wait_to_be_ended(reading, writing)
            started.append(process)
        for _ in range(THREADS_A_CORE * (os.cpu_count() or 1)):
            threading.Thread(target=over.wait).start()
    except OSError as error:
        raise WorkerError(f"a process cannot be started: {explained(error)}") from error
    except RuntimeError as error:
        shortage = OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        raise WorkerError(f"a thread cannot be started: {explained(shortage)}") from error
    finally:
        over.set()
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        os.close(writing)
        os.close(reading)
        for process in started:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)


def _wait_to_be_ended(reading: int, writing: int) -> NoReturn:
    """In a process that was started to see that it can be; it ends with its parent."""
    try:
        os.close(writing)
        os.read(reading, 1)
    finally:
        os._exit(0)
