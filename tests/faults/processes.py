"""Processes of a run, found by a mark in their environment, and what each of them is.

In: the mark. Out: members with their role: what starts jobs, what supervises, what computes.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROLES = ("zygote", "job supervisor", "job", "fork server", "child supervisor", "child", "grandchild")
"""Of the warm worker's forks, by depth."""


class Member(NamedTuple):
    """One process."""

    pid: int
    parent: int
    role: str


class _Seen(NamedTuple):
    parent: int
    session: int
    command: str
    marked: bool


def members(name: str, value: str) -> list[Member]:
    """Every living process with the mark, or below one."""
    seen = {pid: found for pid in _all() if (found := _look(pid, f"{name}={value}".encode())) is not None}
    ours = {pid for pid, each in seen.items() if each.marked}
    grown = True
    while grown:
        below = {pid for pid, each in seen.items() if each.parent in ours}
        grown = not below <= ours
        ours |= below
    ours.discard(os.getpid())
    return [Member(pid, seen[pid].parent, _role(pid, seen)) for pid in sorted(ours)]


def send(process: int, number: signal.Signals) -> bool:
    """Signal a process; whether it was there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)
        return True
    return False


def kill_all(find: Callable[[], list[Member]]) -> None:
    """Until none is left, as new ones may be starting."""
    deadline = time.monotonic() + 20.0
    while time.monotonic() < deadline:
        left = find()
        if not left:
            return
        for member in left:
            send(member.pid, signal.SIGCONT)
            send(member.pid, signal.SIGKILL)
        time.sleep(0.02)
    raise TimeoutError(f"processes that cannot be killed: {find()}")


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _look(pid: int, mark: bytes) -> _Seen | None:
    folder = Path("/proc") / str(pid)
    try:
        state, parent, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (OSError, ValueError):
        return None
    if state == "Z":
        return None
    marked = False
    with contextlib.suppress(OSError):
        marked = mark in (folder / "environ").read_bytes()
    return _Seen(int(parent), int(session), command, marked)


def _role(pid: int, seen: dict[int, _Seen]) -> str:
    command = seen[pid].command
    if "pipeline.execution.workers.zygote" in command:
        return ROLES[min(_depth(pid, seen), len(ROLES) - 1)]
    for name, words in (
        ("submit", "pipeline.execution.workers.submit"),
        ("snakemake", "-m snakemake"),
        ("shell", "bash"),
        ("tee", "tee "),
    ):
        if words in command:
            return (
                "shell"
                if name == "submit" and command.startswith(("/bin/", "bash", "/usr/bin/bash"))
                else name
            )
    return "tool"


def _depth(pid: int, seen: dict[int, _Seen]) -> int:
    """How many forks below a warm worker; a branch of it, which leads a session, is one."""
    parent = seen[pid].parent
    if parent not in seen or "pipeline.execution.workers.zygote" not in seen[parent].command:
        return 0
    above = _depth(parent, seen)
    return 0 if above == 0 and seen[pid].session == pid else above + 1
