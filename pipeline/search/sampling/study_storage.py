"""Optuna's storage by URL, and a lock on one of its studies.

A database file is created under a lock: two processes that create it at the same time would corrupt it.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from pipeline.records.errors import StoreError
from pipeline.records.record import digest

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

SQLITE = "sqlite:///"
LOCK_SECONDS = 60.0  # making the tables takes one or two
BUSY_SECONDS = 60  # SQLite waits so long for another process that writes


def open_storage(url: str | None) -> "BaseStorage":
    """The storage of a URL; None: in memory.

    Raises
    ------
    StoreError
        The database cannot be reached, read or written, or its driver is not installed.
    """
    import optuna

    if url is None:
        return optuna.storages.InMemoryStorage()
    file = database_file(url)
    try:
        with understandable(url):
            if file is None:
                return optuna.storages.get_storage(url)
            file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{file}.lock", timeout=LOCK_SECONDS):
                return optuna.storages.get_storage(
                    optuna.storages.RDBStorage(url, engine_kwargs={"connect_args": {"timeout": BUSY_SECONDS}})
                )
    except (ImportError, OSError, RuntimeError, ValueError, Timeout) as error:
        # RuntimeError: tables of another version; ImportError: no driver; ValueError: no such address.
        raise _store_error(url, error) from error


def database_file(url: str) -> Path | None:
    """The file of an SQLite storage; None for a server."""
    path = url.removeprefix(SQLITE).partition("?")[0]
    return Path(path) if url.startswith(SQLITE) and path and path != ":memory:" else None


def shown(url: str | None) -> str:
    """The storage as messages name it: without a password."""
    if url is None:
        return "memory"
    file = database_file(url)
    if file is not None:
        return str(file)
    scheme, separator, rest = url.partition("://")
    credentials, at, place = rest.rpartition("@")
    user = credentials.partition(":")[0]
    return f"{scheme}{separator}{user}{at}{place}"


@contextlib.contextmanager
def understandable(url: str | None) -> Iterator[None]:
    """Turn errors of the database into one line that names the storage."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as error:
        raise _store_error(url, error.__cause__ or error) from error


def _store_error(url: str | None, cause: BaseException) -> StoreError:
    line = next((line.strip() for line in str(cause).splitlines() if line.strip()), type(cause).__name__)
    return StoreError(f"Optuna's storage {shown(url)}: {line}")


@contextlib.contextmanager
def held(url: str | None, study: str) -> Iterator[None]:
    """Lock a study in a file of this machine: two sweeps of it would take each other's trials.

    Raises
    ------
    StoreError
        Another process has it.
    """
    file = database_file(url) if url is not None else None
    if file is None:
        yield
        return
    folder = file.with_name(f"{file.name}.locks")
    lock = FileLock(folder / digest(study), timeout=0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:  # an OSError, too
        raise StoreError(
            f"study '{study}' in {file}: another sweep is at it; wait for it or give another study_name"
        ) from None
    except OSError as error:
        raise _store_error(url, error) from error
    try:
        yield
    finally:
        lock.release()
