"""One process logs into a tracking store at a time: the store's address in, the right to write out.

What ingestion finds decides what it writes, and MLflow has no transaction over several calls. So writers take
turns, each for a whole ingestion, as if one came after the other. What a killed holder held is free again:

- SQLite: a lock on a file, which the kernel releases;
- PostgreSQL: an advisory lock, which the database releases with the connection of its holder;
- a tracking server, or another database: a lease in the model registry, which runs out (`lease.py`).
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from pipeline.records.errors import TrackingError, explained
from pipeline.records.record import digest_bytes

Purpose = Literal["make", "log"]
"""Making a database's tables, and logging into them: whoever only opens a store waits for no ingestion."""

LOCK_SECONDS = 3600.0  # a holder that is gone holds nothing: this is how long live ones may take together
TOLD_AFTER = 5.0  # seconds of waiting that nobody needs to hear of
POLL_SECONDS = 0.2


def is_sqlite(uri: str) -> bool:
    """Whether the store is a file of this machine."""
    return uri.startswith(("sqlite:", "sqlite+"))


def is_postgres(uri: str) -> bool:
    """Whether the store is a PostgreSQL database."""
    return uri.startswith(("postgresql:", "postgresql+"))


@contextlib.contextmanager
def file_lock(folder: Path, purpose: Purpose) -> Iterator[None]:
    """Hold a lock file in a folder, which is made.

    Raises
    ------
    TrackingError
        It stays held, or the folder cannot be written.
    """
    path = folder / f"{purpose}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, timeout=0)
        _wait(lambda: _taken(lock), str(path))
    except OSError as error:
        raise TrackingError(f"{folder}: cannot be written: {explained(error)}") from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def sqlite_lock(uri: str, purpose: Purpose) -> Iterator[None]:
    """Hold the lock of a SQLite store: it lies beside the database, whoever opens it from wherever."""
    database = uri.partition(":///")[2].partition("?")[0]
    with file_lock(Path(database or ".").absolute().parent, purpose):
        yield


@contextlib.contextmanager
def postgres_lock(uri: str, purpose: Purpose) -> Iterator[Callable[[], None]]:
    """Hold an advisory lock of the database, on a connection of its own; yields what asks whether it stands.

    Raises
    ------
    TrackingError
        It stays held, or the driver is missing.
    sqlalchemy.exc.SQLAlchemyError
        The database does not answer.
    """
    import sqlalchemy

    # One key per purpose; advisory locks of PostgreSQL are numbers of 64 bits with a sign, per database.
    key = int(digest_bytes(f"kernelmill {purpose}".encode())[:15], 16)
    engine = sqlalchemy.create_engine(uri, poolclass=sqlalchemy.NullPool, isolation_level="AUTOCOMMIT")
    ask, free = (
        sqlalchemy.text(f"SELECT pg_{verb}(:key)") for verb in ("try_advisory_lock", "advisory_unlock")
    )
    with engine.connect() as connection:
        _wait(lambda: bool(connection.scalar(ask, {"key": key})), f"the lock '{purpose}' of the database")
        try:
            yield lambda: connection.scalar(sqlalchemy.text("SELECT NULL"))
        finally:
            # A connection that broke meanwhile took its lock with it.
            with contextlib.suppress(sqlalchemy.exc.SQLAlchemyError):
                connection.execute(free, {"key": key})


def _wait(take: Callable[[], bool], name: str) -> None:
    """Ask until it is ours; say so once where it takes longer."""
    started = time.monotonic()
    told = False
    while not take():
        waited = time.monotonic() - started
        if waited > LOCK_SECONDS:
            raise TrackingError(f"{name}: still held by another process after {LOCK_SECONDS:.0f} s")
        if waited > TOLD_AFTER and not told:
            told = True
            print(f"track: another ingestion is at work; waiting for it ({name}) …", file=sys.stderr)
        time.sleep(POLL_SECONDS)


def _taken(lock: FileLock) -> bool:
    try:
        lock.acquire()
    except Timeout:
        return False
    with contextlib.suppress(OSError):
        # Made by whoever came first: in a shared folder, the others may take it, too.
        path = Path(lock.lock_file)
        if path.stat().st_uid == os.getuid():
            path.chmod(path.parent.stat().st_mode & 0o666)
    return True
