"""Opens the MLflow store that the settings name: Tracking in, a client and the place of the artifacts out.

`embedded` is SQLite under `<root>/mlflow/`. Several processes that open a database which does not exist yet
break it for good, whichever database it is, so its tables are made once, under a lock; for SQLite,
write-ahead logging, which lets the UI read while runs are written, is switched on last and so also says that
the database is whole. A damaged database is moved aside.

MLflow and SQLAlchemy are imported where they are used: every run asks here whether the database exists.
"""

import contextlib
import errno
import importlib
import logging
import sqlite3
import sys
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.records import environment
from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.errors import REMEDIES, TrackingError, installation
from pipeline.records.record import Record, digest
from pipeline.track.stores.store_locks import (
    file_lock,
    is_postgres,
    is_sqlite,
    lease,
    postgres_lock,
    sqlite_lock,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient


MAGIC = b"SQLite format 3\0"
PAGE_SIZE, PAGES = (
    slice(16, 18),
    slice(28, 32),
)  # big-endian numbers of the header (sqlite.org/fileformat2.html)
ASIDE = ".damaged"
SIDE_FILES = ("-wal", "-shm", "-journal")


def database(root: Path) -> Path:
    """The path of the embedded database."""
    return root / "mlflow" / "mlflow.db"


def holds(uri: str, root: Path) -> bool:
    """Whether what was logged to this address can still be there; a server's word is taken."""
    path = database(root)
    if uri != f"sqlite:///{path.resolve()}":
        return True
    return looks_whole(path)


def looks_whole(path: Path) -> bool:
    """Whether the file is a SQLite database that was not truncated; its content is not checked."""
    try:
        with path.open("rb") as stream:
            header = stream.read(100)
        size = path.stat().st_size
    except OSError:
        return False
    if not header.startswith(MAGIC):
        return False
    if _has_pages(path.with_name(path.name + "-wal")):
        return True  # a checkpoint that was cut is begun again from there
    page = int.from_bytes(header[PAGE_SIZE], "big")
    return size >= int.from_bytes(header[PAGES], "big") * (65536 if page == 1 else page)


def _has_pages(log: Path) -> bool:
    try:
        return log.stat().st_size > 0
    except OSError:
        return False


def move_damaged_aside(root: Path) -> None:
    """Where the database is damaged, keep it under another name, so that a new one is made.

    The results of this run are logged again from the store; those of other runs are when they run
    again.
    """
    path = database(root)
    if not path.is_file() or path.stat().st_size == 0 or _is_sound(path):
        return
    number = 1
    while (aside := path.with_name(f"{path.name}{ASIDE}-{number}")).exists():
        number += 1
    path.rename(aside)
    for suffix in SIDE_FILES:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    print(f"{path}: damaged, kept as {aside.name}; a new one is made", file=sys.stderr)


def _is_sound(path: Path) -> bool:
    if not looks_whole(path):
        return False
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=60.0)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.DatabaseError as error:
        # A database that is locked or cannot be opened is not damaged: its next user reports the error.
        return isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error)


LIBRARIES = (
    *("mlflow", "mlflow.data.pandas_dataset"),
    *("mlflow.store.tracking.sqlalchemy_store", "mlflow.store.model_registry.sqlalchemy_store"),
    *("mlflow.store.tracking.sqlalchemy_workspace_store", "sqlalchemy.dialects.sqlite", "pyarrow.dataset"),
)
"""That are imported where they are used, and take most of the time of a small experiment's logging."""
EMBEDDED = "embedded"
WRITE_AHEAD = b"\x02\x02"  # bytes 18 and 19 of a SQLite file in this mode (sqlite.org/fileformat2.html)


class MlflowStore(Record, frozen=True, kw_only=True):
    """An open tracking store."""

    client: "MlflowClient"
    uri: str
    artifacts: str | None
    """Where new experiments keep their artifacts: a path or a URL; None where the server decides."""


def backend_uri(uri: str, root: Path) -> str:
    """The URI that MLflow takes."""
    return f"sqlite:///{database(root).resolve()}" if uri == EMBEDDED else uri


def shown_uri(uri: str) -> str:
    """The URI without a password, for records and messages."""
    parts = urllib.parse.urlsplit(uri)
    if parts.password is None:
        return uri
    return uri.replace(f":{parts.password}@", "@", 1)


def is_server(uri: str) -> bool:
    """Whether an MLflow server stands between us and its database."""
    return uri.startswith(("http://", "https://"))


def open_store(tracking: Tracking, root: Path) -> MlflowStore:
    """Open the store, and make the embedded one where it does not exist.

    Raises
    ------
    TrackingError
        The server does not answer, or the database cannot be opened.
    """
    uri = backend_uri(tracking.uri, root)
    if tracking.uri == EMBEDDED:
        with file_lock(root / "mlflow", "make"):
            move_damaged_aside(root)
        make_embedded(root)
    with understandable(uri), _made_by_one(tracking):
        client = _client(uri)
        client.search_experiments(max_results=1)
    return MlflowStore(client=client, uri=uri, artifacts=_artifacts(tracking, root))


@contextlib.contextmanager
def exclusive(store: MlflowStore) -> Iterator[Callable[[], None]]:
    """Wait for the right to log, and hold it; what it yields raises where the right was lost meanwhile.

    Raises
    ------
    TrackingError
        Others hold it for too long.
    """
    if is_sqlite(store.uri):
        with sqlite_lock(store.uri, "log"):
            yield _nothing_to_check
    elif is_postgres(store.uri):
        with postgres_lock(store.uri, "log") as check:
            yield check
    else:
        with lease(store.client) as held:
            yield held.check


def _nothing_to_check() -> None:
    """The kernel does not take a file's lock away."""


def _made_by_one(tracking: Tracking) -> contextlib.AbstractContextManager[Any]:
    """The lock under which a database that is not there yet is made."""
    if is_postgres(tracking.uri):
        return postgres_lock(tracking.uri, "make")
    if is_sqlite(tracking.uri):
        return sqlite_lock(tracking.uri, "make")
    return contextlib.nullcontext()


def _artifacts(tracking: Tracking, root: Path) -> str | None:
    if tracking.artifacts is not None:
        return tracking.artifacts.rstrip("/")
    if is_server(tracking.uri):
        return None
    return (root / "mlflow" / "artifacts").resolve().as_posix()


def make_embedded(root: Path) -> None:
    """Make the embedded database, whole or not at all, once."""
    path = database(root)
    if _is_whole(path):
        return
    with file_lock(root / "mlflow", "make"):
        if _is_whole(path):
            return
        for suffix in ("", *SIDE_FILES):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        uri = backend_uri(EMBEDDED, root)
        with understandable(uri):
            _client(uri).search_experiments(max_results=1)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")


@contextlib.contextmanager
def understandable(uri: str) -> Iterator[None]:
    """Turn what MLflow and its database raise into one line that names the address."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except ImportError as error:
        needed = installation("postgres") if is_postgres(uri) else "install it"
        raise TrackingError(f"MLflow at {shown_uri(uri)}: {error} ({needed})") from error
    except (MlflowException, SQLAlchemyError, OSError) as error:
        reason = " ".join(str(error).split())
        shown = shown_uri(uri)
        if _is_silence(uri, reason):
            raise TrackingError(
                f"MLflow at {shown} does not answer: start it and run again, which logs what is missing (the "
                "results are kept), or use tracking=mlflow or tracking=disabled"
            ) from error
        if "database is locked" in reason:
            raise TrackingError(
                f"MLflow at {shown}: the database is locked by another process: end that one and run again"
            ) from error
        raise TrackingError(f"MLflow at {shown}: {_short(error, reason)}") from error


def _short(error: Exception, reason: str) -> str:
    """Without the statement and its values; with what to do where that is known."""
    cause = reason.partition(" [SQL:")[0][:300]
    if "database or disk is full" in cause:
        return f"{cause}; {REMEDIES[errno.ENOSPC]}"
    if "readonly database" in cause or "unable to open database file" in cause:
        return f"{cause}; {REMEDIES[errno.EACCES]}"
    remedy = REMEDIES.get(error.errno or 0) if isinstance(error, OSError) else None
    return f"{cause}; {remedy}" if remedy else cause


def _is_silence(uri: str, reason: str) -> bool:
    """Whether nothing listens at the address."""
    if is_server(uri):
        return "Max retries" in reason or "Connection" in reason
    return is_postgres(uri) and ("connection to server" in reason or "could not connect" in reason)


def experiment_id(store: MlflowStore, name: str, tags: dict[str, str]) -> str:
    """The experiment of that name, made or brought back where needed, with its tags brought up to date."""
    from mlflow.exceptions import MlflowException

    found = store.client.get_experiment_by_name(name)
    if found is None:
        location = f"{store.artifacts}/{_folder(name)}" if store.artifacts else None
        try:
            return str(store.client.create_experiment(name, artifact_location=location, tags=tags))
        except MlflowException:
            # Another machine was first.
            found = store.client.get_experiment_by_name(name)
            if found is None:
                raise
    if found.lifecycle_stage != "active":
        store.client.restore_experiment(found.experiment_id)
    set_experiment_tags(store, found.experiment_id, tags)
    return str(found.experiment_id)


def set_experiment_tags(store: MlflowStore, experiment: str, tags: Mapping[str, str]) -> None:
    """Set those that have another value."""
    known = store.client.get_experiment(experiment).tags
    for key, value in tags.items():
        if known.get(key) != value:
            store.client.set_experiment_tag(experiment, key, value)


def prepare() -> None:
    """Import what logging needs, in a process that jobs are forked from; nothing is opened."""
    environment.mlflow_defaults()
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):  # another version of MLflow may have another layout
            importlib.import_module(name)


def _client(uri: str) -> "MlflowClient":
    environment.mlflow_defaults()
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # They print tracebacks and attempts of what we retry, or tell in one line.
    for name in ("mlflow.store.db.utils", "sqlalchemy.pool", "urllib3.connectionpool"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with understandable(uri):
        return MlflowClient(tracking_uri=uri, registry_uri=uri)


def _is_whole(path: Path) -> bool:
    """Whether creation finished; a database that holds runs is never taken for a broken one."""
    try:
        with path.open("rb") as stream:
            header = stream.read(20)
    except FileNotFoundError:
        return False
    if header[18:20] == WRITE_AHEAD:
        return True
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute("SELECT count(*) FROM runs").fetchone()[0])
    except sqlite3.Error as error:
        if "no such table" in str(error):
            return False
        raise TrackingError(f"{path}: cannot be opened: {error}") from error


def _folder(name: str) -> str:
    """A folder's name from an experiment's, distinct for distinct experiments."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)
    return safe if safe == name else f"{safe}-{digest(name)[:8]}"
