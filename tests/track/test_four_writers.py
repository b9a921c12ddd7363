"""Four writers at once into one store: nothing lost, nothing twice; also where one of them is killed."""

import sqlite3
from pathlib import Path

import msgspec
import pytest

from pipeline.records.configuration.stage_settings import Tracking
from pipeline.track.stores.mlflow_store import open_store
from tests.track.four_writers import assert_whole, ingest_at_once, kill_in_the_middle, sources
from tests.track.mlflow_server import serving
from tests.track.small_run import TRACKING, copy_store


@pytest.fixture
def tracking(tmp_path: Path) -> Tracking:
    """A SQLite file that all four share; nobody made it yet."""
    uri = f"sqlite:///{tmp_path}/team/mlflow.db"
    (tmp_path / "team").mkdir()
    return msgspec.structs.replace(TRACKING, uri=uri, artifacts=str(tmp_path / "team" / "artifacts"))


def _has_runs(database: Path, count: int = 3) -> bool:
    """Whether so many runs are in a database, which may not be made yet."""
    try:
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            return bool(connection.execute("SELECT count(*) FROM runs").fetchone()[0] >= count)
    except sqlite3.Error:
        return False


@pytest.mark.slow
def test_into_sqlite_after_a_kill(tmp_path: Path, tracking: Tracking) -> None:
    """What the killed one left half is not seen, and what it had finished is not logged again.

    The killed one also made the database. A second time, nothing is added.
    """
    given = sources(tmp_path, tracking)
    kill_in_the_middle(given[0], lambda: _has_runs(tmp_path / "team" / "mlflow.db"))
    for _ in range(2):
        ingest_at_once(given)
        assert_whole(open_store(tracking, tmp_path), given)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_into_a_server_after_a_kill(tmp_path: Path, template: Path) -> None:
    """They take turns by a lease in its registry; that of the killed one runs out."""
    root = tmp_path / "server"
    copy_store(template, root)
    with serving(root) as base:
        tracking = msgspec.structs.replace(TRACKING, uri=base)
        given = sources(tmp_path, tracking)
        kill_in_the_middle(given[0], lambda: _has_runs(root / "mlflow" / "mlflow.db"))
        ingest_at_once(given)
        assert_whole(open_store(tracking, tmp_path), given)
