"""All processes that came from one: how many there are, and their end."""

import contextlib
import os
import signal
from pathlib import Path

_ROUNDS = 100  # bounded: processes that multiply must not hold the supervisor for ever


def count(process: int) -> int:
    """How many processes live below one; those that lost their parent are its supervisor's now."""
    return len(below(process)) + sum(other != process for other in children(os.getpid()))


def children(process: int) -> list[int]:
    """Process ids of the children of all threads; none where the platform does not tell."""
    found = []
    try:
        for thread in (Path("/proc") / str(process) / "task").iterdir():
            with contextlib.suppress(OSError):
                found += [int(pid) for pid in (thread / "children").read_text().split()]
    except OSError:
        return []
    return found


def kill(process: int) -> None:
    """Kill a process with its session, then whatever was re-parented to this one; it is not waited for."""
    for _ in range(_ROUNDS):
        for pid in below(process):
            _kill(pid)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)
        _kill(process)
        others = [pid for pid in children(os.getpid()) if pid != process]
        if not others:
            return
        for pid in others:
            _kill(pid)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def below(process: int) -> list[int]:
    """Process ids of its children, of their children, and so on; not its own."""
    found: list[int] = []
    todo = [process]
    while todo and len(found) < 4096:  # enough to see that there are too many
        more = children(todo.pop())
        found += more
        todo += more
    return found


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)
