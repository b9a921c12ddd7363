"""One run at a time: a lock that the kernel releases when its holder ends, also after `kill -9`."""

import contextlib
import fcntl
import os
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from pipeline.records.errors import StoreError, explained

SAY_SECONDS = 30.0
"""How often a run that waits says so."""
COMMAND_LENGTH = 120
"""Characters that are shown of another run's command."""


def take_lock(path: Path) -> TextIO:
    """Wait until it is free, naming the holder now and then; held until the file closes or the process ends.

    Raises
    ------
    StoreError
        The lock cannot be opened, or the file system has none.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a+")
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {explained(error)}") from error
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with _said_while_waiting(path):
            fcntl.flock(stream, fcntl.LOCK_EX)
    except OSError as error:  # a shared file system that was mounted so
        raise StoreError(
            f"{path}: the file system does not lock files ({error.strerror}): see "
            "docs/guide/clusters.md for what it must do"
        ) from None
    with contextlib.suppress(OSError):  # it only names the holder of the lock
        stream.truncate(0)
        stream.write(f"{os.getpid()}\n")
        stream.flush()
    return stream


@contextlib.contextmanager
def _said_while_waiting(path: Path) -> Iterator[None]:
    """At once, and then every `SAY_SECONDS` with how long it has been; the holder may change meanwhile."""
    started, ended = time.monotonic(), threading.Event()

    def say() -> None:
        while not ended.wait(SAY_SECONDS):
            seconds = time.monotonic() - started
            print(f"waited {seconds:.0f} s for {_holder(path)} …", file=sys.stderr, flush=True)

    print(f"waiting for {_holder(path)} …", file=sys.stderr, flush=True)
    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _holder(path: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        process = int(path.read_text())
        command = _command(process)
        return f"another run in this checkout (process {process}{f': {command}' if command else ''})"
    return "another run in this checkout (process unknown)"


def _command(process: int) -> str:
    """What a user typed: of the holder, or of what started it; empty where neither is a run of ours.

    On a shared file system, the holder may be on another machine, and its number a stranger's here.
    """
    with contextlib.suppress(OSError, ValueError):
        words, parent = _words(process), _parent(process)
        for each in (_words(parent), words):
            typed = _typed(each)
            if typed:
                return typed if len(typed) <= COMMAND_LENGTH else f"{typed[: COMMAND_LENGTH - 1]}…"
    return ""


def _typed(words: list[str]) -> str:
    names = [Path(word).name for word in words[:4]]
    for at, name in enumerate(names):
        if name in ("kernelmill", "snakemake") or (name == "pipeline" and "-m" in names[:at]):
            return shlex.join(["kernelmill" if name == "pipeline" else name, *words[at + 1 :]])
    return ""


def _words(process: int) -> list[str]:
    return Path(f"/proc/{process}/cmdline").read_text(errors="replace").rstrip("\0").split("\0")


def _parent(process: int) -> int:
    """Its name, in brackets, may have anything in it."""
    return int(Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
