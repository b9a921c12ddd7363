"""The history of coding agents: attempts in, the same attempts out, also after a restart or a kill.

A client has one file, `agents/history/<client>.jsonl`, with one line per attempt. Sources lie in
`agents/sources/`, named by their digest. Who appends holds the client's lock (`locked`).
"""

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pipeline.records.errors import StoreError
from pipeline.records.record import digest, digest_bytes, to_json
from pipeline.records.results.attempts import Attempt
from pipeline.store.atomic import make_folder, unwritable, write_atomic

FOLDER = "agents"
POLL_SECONDS = 0.05


def history_path(root: Path, client: str) -> Path:
    """The file of a client; distinct names have distinct files."""
    return root / FOLDER / "history" / f"{_file_name(client)}.jsonl"


def source_path(root: Path, source: str) -> Path:
    """The file of a source, by its digest."""
    return root / FOLDER / "sources" / f"{source}.py"


def put_source(root: Path, text: str) -> str:
    """Store a submitted text; returns its digest."""
    content = text.encode(errors="surrogateescape")
    name = digest_bytes(content)
    path = source_path(root, name)
    if not path.is_file():
        write_atomic(path, content)
    return name


def append_attempt(root: Path, attempt: Attempt) -> None:
    """Add an attempt to its client's history.

    Raises
    ------
    StoreError
        No space, no permission.
    """
    path = history_path(root, attempt.client)
    try:
        make_folder(path.parent)
        with path.open("ab+") as stream:
            if stream.tell() > 0:
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":  # what a kill cut off stays a line of its own
                    stream.write(b"\n")
            stream.write(to_json(attempt) + b"\n")
    except OSError as error:
        raise unwritable(path, error) from error


def read_attempts(root: Path, client: str | None = None) -> tuple[Attempt, ...]:
    """Those of one client, or of all, each client's in order; a line that was cut off is passed over."""
    if client is None:
        paths = sorted((root / FOLDER / "history").glob("*.jsonl"))
    else:
        paths = [history_path(root, client)]
    return tuple(attempt for path in paths for attempt in _attempts(path))


def _attempts(path: Path) -> Iterator[Attempt]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    for line in lines:
        with contextlib.suppress(msgspec.DecodeError):
            yield msgspec.json.decode(line, type=Attempt)


@contextlib.contextmanager
def locked(root: Path, *names: str, deadline: float) -> Iterator[None]:
    """Hold one of these locks, whichever is free first, across all processes of the machine.

    A lock ends with its holder, also after `kill -9`. `deadline` is of the monotonic clock.

    Raises
    ------
    TimeoutError
        None was free until then.
    """
    folder = root / FOLDER / "locks"
    make_folder(folder)
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context((folder / _file_name(name)).open("a")) for name in names]
        while not any(_takes(stream.fileno()) for stream in streams):
            if time.monotonic() > deadline:
                raise TimeoutError(f"none of {len(names)} locks was free")
            time.sleep(POLL_SECONDS)
        yield


def _takes(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _file_name(name: str) -> str:
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60]
    return safe if safe == name else f"{safe}-{digest(name)[:8]}"
