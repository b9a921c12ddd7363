"""One process logs into a tracking store at a time: the store's address in, the right to write out.

Ingestion reads what is logged and writes what is missing, and MLflow has no transaction over several calls.
So writers take turns, each for a whole ingestion. A lock whose holder was killed becomes free again:

- SQLite: a lock on a file, which the kernel releases;
- PostgreSQL: an advisory lock, which the database releases with the connection of its holder;
- a tracking server, or another database: a lease, that is, a registered model that exists while it is held.

MLflow's registry refuses a second model of the same name, which decides who was first. The holder of a lease
changes a tag every few seconds. A process that waits and sees no change for 45 s by its own clock takes the
lease over by renaming the model, which again only one process can do: the new name contains the old
holder's token.
"""

import contextlib
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from filelock import FileLock, Timeout

from pipeline.records.errors import TrackingError, explained
from pipeline.records.record import digest_bytes

if TYPE_CHECKING:
    from mlflow import MlflowClient


Purpose = Literal["make", "log"]
"""Creating a database's tables, and logging into them: opening a store does not wait for an ingestion."""

LOCK_SECONDS = 3600.0  # a holder that is gone holds nothing: this is how long live ones may take together
REPORT_SECONDS = 5.0  # seconds of waiting that are not reported
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
    """Hold the lock of a SQLite store: the lock file is next to the database."""
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
    reported = False
    while not take():
        waited = time.monotonic() - started
        if waited > LOCK_SECONDS:
            raise TrackingError(f"{name}: still held by another process after {LOCK_SECONDS:.0f} s")
        if waited > REPORT_SECONDS and not reported:
            reported = True
            print(f"track: another ingestion is at work; waiting for it ({name}) …", file=sys.stderr)
        time.sleep(POLL_SECONDS)


def _taken(lock: FileLock) -> bool:
    try:
        lock.acquire()
    except Timeout:
        return False
    with contextlib.suppress(OSError):
        # Created by the first process: in a shared folder, other users may take it, too.
        path = Path(lock.lock_file)
        if path.stat().st_uid == os.getuid():
            path.chmod(path.parent.stat().st_mode & 0o666)
    return True


NAME = "kernelmill.lock"
HOLDER, BEAT = "holder", "beat"
DESCRIPTION = "Held by the process that logs results, and removed afterwards: not a model."
BEAT_SECONDS = 5.0
STALE_SECONDS = 45.0  # nine beats
LEASE_POLL_SECONDS = 0.5
EXISTS, ABSENT = "RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST"
CONFLICT = "BAD_REQUEST"  # a row that another one renamed between being read and being written


class LeaseLost(TrackingError):
    """The lease was lost because it was not renewed in time; the next ingestion finds what was logged."""


class Lease:
    """The lock, held by this process."""

    def __init__(self, client: "MlflowClient", token: str) -> None:
        self._client = client
        self._token = token
        self._ended = threading.Event()
        self._lost = False
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Go on only while it is held.

        Raises
        ------
        LeaseLost
            Another process holds it now.
        """
        if self._lost:
            raise LeaseLost("the right to log was taken over by another process: this one was not heard of")

    def release(self) -> None:
        """Let the next one have it."""
        self._ended.set()
        self._thread.join()
        if not self._lost and _holder(self._client) == self._token:
            self._client.delete_registered_model(NAME)

    def _renew(self) -> None:
        from mlflow.exceptions import MlflowException

        beat = 0
        while not self._ended.wait(BEAT_SECONDS):
            beat += 1
            # A server that does not answer now may do so at the next beat.
            with contextlib.suppress(MlflowException):
                if _holder(self._client) != self._token:
                    self._lost = True
                    return
                self._client.set_registered_model_tag(NAME, BEAT, str(beat))


@contextlib.contextmanager
def lease(client: "MlflowClient") -> Iterator[Lease]:
    """Wait for it and hold it.

    Raises
    ------
    TrackingError
        Others hold it for an hour.
    """
    token = uuid.uuid4().hex
    stale = _acquire(client, token)
    held = Lease(client, token)
    try:
        yield held
    finally:
        held.release()
        for name in stale:
            _forget(client, name)


def _acquire(client: "MlflowClient", token: str) -> list[str]:
    """Wait until it is ours; the names under which locks of dead holders were put away."""
    started = changed = time.monotonic()
    seen: tuple[str | None, ...] = ()
    stale: list[str] = []
    while not _create(client, token):
        now = time.monotonic()
        state = _state(client)
        if state != seen:
            seen, changed = state, now
        elif state[0] is not None and now - changed > STALE_SECONDS:
            stale += _put_away(client, state[0])
        if now - started > LOCK_SECONDS:
            raise TrackingError(
                f"the registered model {NAME}: still held by others after {LOCK_SECONDS:.0f} s "
                "(where nobody logs, delete it)"
            )
        time.sleep(LEASE_POLL_SECONDS)
    return stale


def _create(client: "MlflowClient", token: str) -> bool:
    from mlflow.exceptions import MlflowException

    try:
        client.create_registered_model(NAME, tags={HOLDER: token, BEAT: "0"}, description=DESCRIPTION)
    except MlflowException as error:
        if error.error_code != EXISTS:
            raise
        # Made by ourselves, where the answer to the first attempt was lost on its way.
        return _holder(client) == token
    return True


def _state(client: "MlflowClient") -> tuple[str | None, ...]:
    """What its holder changes; all None where it is free."""
    from mlflow.exceptions import MlflowException

    try:
        tags = client.get_registered_model(NAME).tags
    except MlflowException as error:
        if error.error_code != ABSENT:
            raise
        return None, None
    return tags.get(HOLDER, ""), tags.get(BEAT)


def _holder(client: "MlflowClient") -> str | None:
    return _state(client)[0]


def _put_away(client: "MlflowClient", holder: str) -> list[str]:
    """Free the lock of a dead holder; only one of those who wait can."""
    from mlflow.exceptions import MlflowException

    name = f"{NAME}.{holder or 'unknown'}"
    try:
        client.rename_registered_model(NAME, name)
    except MlflowException as error:
        if error.error_code not in (EXISTS, ABSENT, CONFLICT):
            raise
        return []
    return [name]


def _forget(client: "MlflowClient", name: str) -> None:
    from mlflow.exceptions import MlflowException

    with contextlib.suppress(MlflowException):
        client.delete_registered_model(name)
