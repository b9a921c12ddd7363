"""The same code against PostgreSQL, with four writers at once, kills and restarts: `make test-postgres`."""

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.record import read_record
from pipeline.records.results.tracked import Tracked, TrackOutput
from pipeline.stages import track
from pipeline.track.stores import mlflow_database, retries
from pipeline.track.stores.mlflow_store import open_store
from tests.track import postgres
from tests.track.four_writers import assert_whole, ingest_at_once, kill_in_the_middle, sources
from tests.track.small_run import TRACKING, measured, write_source

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(400)]

SPACE_OF_80 = {"unroll": tuple(range(40)), "vectorize": (False, True)}


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    """A PostgreSQL whose database is empty: MLflow was never there."""
    pytest.importorskip("psycopg2", reason="needs pip install 'kernelmill[postgres]'")
    try:
        with postgres.running() as running:
            yield running
    except postgres.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def tracking(tmp_path: Path, server: postgres.Server) -> Tracking:
    """The settings of a team: one database, artifacts where all can reach them."""
    return msgspec.structs.replace(TRACKING, uri=server.uri, artifacts=str(tmp_path / "team"))


def _runs(server: postgres.Server) -> int:
    import psycopg2

    try:
        with psycopg2.connect(server.uri) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM runs")
            return int(cursor.fetchone()[0])
    except psycopg2.Error:
        return 0


def test_four_writers(tmp_path: Path, tracking: Tracking) -> None:
    """They also make the tables; a second time, nothing is added."""
    given = sources(tmp_path, tracking)
    for _ in range(2):
        ingest_at_once(given)
        assert_whole(open_store(tracking, tmp_path), given)


def test_four_writers_after_a_kill(tmp_path: Path, tracking: Tracking, server: postgres.Server) -> None:
    """The database frees the lock of a writer that is gone."""
    given = sources(tmp_path, tracking)
    kill_in_the_middle(given[0], lambda: _runs(server) >= 3)
    ingest_at_once(given)
    assert_whole(open_store(tracking, tmp_path), given)


def test_a_database_that_restarts_in_the_middle(
    tmp_path: Path,
    tracking: Tracking,
    server: postgres.Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ingestion waits for it and goes on; no run is there twice."""
    write_runs, waited = mlflow_database.write_runs, time.sleep
    lost: list[bool] = []

    def write(*given: Any) -> dict[str, str]:
        written = write_runs(*given)
        if not lost:
            lost.append(True)
            server.stop("immediate")
            raise ConnectionError("connection lost: what was written is there, the answer is not")
        return written

    def wait(seconds: float) -> None:
        server.start()
        waited(seconds)

    monkeypatch.setattr(mlflow_database, "write_runs", write)
    # Not by another thread after some time: MLflow waits for a database itself in places, and says nothing.
    monkeypatch.setattr(retries, "time", SimpleNamespace(sleep=wait, monotonic=time.monotonic))
    source = write_source(tmp_path, [measured(space=SPACE_OF_80, failures={})], tracking)
    open_store(tracking, tmp_path)  # tables take seconds to make
    code = track.main(
        [
            *("--spec", str(tmp_path / "spec.json"), "--aggregate", str(source.aggregate)),
            *("--out", str(tmp_path / "tracked.json"), "--root", str(tmp_path)),
        ]
    )
    said = capsys.readouterr().err
    assert code == 0, said
    assert "again in" in said
    result = read_record(tmp_path / "tracked.json", TrackOutput).result
    assert isinstance(result, Tracked)
    assert result.measured.new + result.measured.same == 80
    found = open_store(tracking, tmp_path).client.search_runs(
        [result.experiments["kernelmill"]], max_results=1000
    )
    assert len(found) == 80


def test_a_database_that_is_down_is_told_in_one_line(
    tmp_path: Path, tracking: Tracking, server: postgres.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is lost: the next run logs it."""
    source = write_source(tmp_path, [measured()], tracking)
    server.stop()
    arguments = [
        *("--spec", str(tmp_path / "spec.json"), "--aggregate", str(source.aggregate)),
        *("--out", str(tmp_path / "tracked.json"), "--root", str(tmp_path)),
    ]
    capsys.readouterr()
    assert track.main(arguments) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "does not answer: start it and run again" in lines[0]
    server.start()
    assert track.main(arguments) == 0
