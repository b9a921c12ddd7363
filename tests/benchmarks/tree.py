"""Run a command to its end with all processes that come of it. In: a command. Out: seconds and bytes.

Processes that leave their parent (the warm worker does) are re-parented to this one, so that they are ended
and counted as well.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.backends.devices import disturbance
from pipeline.records.record import Record
from pipeline.sandbox.processes import descendants

_PR_SET_CHILD_SUBREAPER = 36
_LOOK_SECONDS = 0.2  # between two looks at memory; a look takes some milliseconds


class Spent(Record, frozen=True, kw_only=True):
    """What one command took."""

    seconds: float
    """Wall time, until the command itself ended."""
    cpu_seconds: float
    """Of the whole machine, from its start until the last of its processes ended."""
    peak: int | None
    """Largest sum of the processes' memory (proportional set size), bytes; None where it was not watched."""
    output: str


class Failed(RuntimeError):
    """The command ended with another code than 0; its output is the text."""


def spend(
    command: Sequence[str],
    *,
    folder: Path,
    environment: dict[str, str],
    temporary: Path,
    limit: float = 590.0,
    watch: bool = False,
) -> Spent:
    """Run a command whose TMPDIR is `temporary`, where the warm workers to be ended have their sockets.

    Raises
    ------
    Failed
        It failed, or took longer than `limit` seconds.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    others = set(descendants.children(os.getpid()))
    with tempfile.TemporaryFile() as stream, _watching(others if watch else None) as peak:
        before, started = _busy(), time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        timer = threading.Timer(limit, lambda: os.killpg(process.pid, signal.SIGKILL))
        timer.start()
        _, status = os.waitpid(process.pid, 0)
        wall = time.perf_counter() - started
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        _end_workers(temporary, others)
        cpu = _busy() - before
        stream.seek(0)
        output = stream.read().decode(errors="replace")
    if process.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {process.returncode}\n{output}")
    return Spent(seconds=wall, cpu_seconds=cpu, peak=max(peak) if watch else None, output=output)


def _busy() -> float:
    """CPU seconds; those of processes that nobody waits for (the sandbox's) are in no other account."""
    load = disturbance.load()
    assert load is not None, "benchmarks need Linux"
    return load.busy


def _end_workers(temporary: Path, others: set[int]) -> None:
    """A warm worker whose socket is gone ends within a second; wait for all that left their parents."""
    for socket in temporary.glob("kernelmill-*/*.sock"):
        socket.unlink()
    while left := set(descendants.children(os.getpid())) - others:
        for process in left:
            os.waitpid(process, 0)


@contextlib.contextmanager
def _watching(others: set[int] | None) -> Iterator[list[int]]:
    """Sums of the memory of all processes below this one but for the others, look by look; None: no looks."""
    found = [0]
    if others is None:
        yield found
        return
    end = threading.Event()

    def look() -> None:
        while not end.wait(_LOOK_SECONDS):
            found.append(sum(map(_proportional, _below(os.getpid(), others))))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        end.set()
        thread.join()


def _below(process: int, others: set[int]) -> list[int]:
    found = [child for child in descendants.children(process) if child not in others]
    return found + [each for child in found for each in _below(child, others)]


def _proportional(process: int) -> int:
    """Bytes, pages that several processes share counted by their share; 0 of one that has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0
