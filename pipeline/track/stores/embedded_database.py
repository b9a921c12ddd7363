"""Whether the embedded database still is one: a file in, yes or no out, and a damaged one moved aside.

Little is imported here: every run asks before it believes that its results are logged.
"""

import contextlib
import sqlite3
import sys
from pathlib import Path

MAGIC = b"SQLite format 3\0"
PAGE_SIZE, PAGES = (
    slice(16, 18),
    slice(28, 32),
)  # big-endian numbers of the header (sqlite.org/fileformat2.html)
ASIDE = ".damaged"
SIDE_FILES = ("-wal", "-shm", "-journal")


def database(root: Path) -> Path:
    """Where the embedded database lies."""
    return root / "mlflow" / "mlflow.db"


def holds(uri: str, root: Path) -> bool:
    """Whether what was logged to this address can still be there; a server's word is taken."""
    path = database(root)
    if uri != f"sqlite:///{path.resolve()}":
        return True
    return looks_whole(path)


def looks_whole(path: Path) -> bool:
    """Whether the file is a SQLite database that was not cut; tells nothing about what is inside."""
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

    What the run at hand measured is logged anew from the store; what other runs had logged is when they run
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
        # A database that is locked or cannot be opened is not damaged: whoever uses it next says what it is.
        return isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error)
