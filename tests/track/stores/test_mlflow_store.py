"""Opening the store, and making the embedded one."""

import multiprocessing
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from pipeline.records.errors import TrackingError
from pipeline.track.stores.mlflow_store import (
    MlflowStore,
    backend_uri,
    database,
    experiment_id,
    holds,
    looks_whole,
    make_embedded,
    move_damaged_aside,
    open_store,
    shown_uri,
)
from pipeline.track.stores.store_locks import file_lock
from tests.track.small_run import TRACKING

NOBODY = "http://127.0.0.1:9"  # the discard port: nothing listens there


def _open(root: Path) -> None:
    open_store(TRACKING, root).client.create_experiment(f"of {multiprocessing.current_process().name}")


@pytest.mark.slow
def test_processes_that_start_together_make_one_database(tmp_path: Path) -> None:
    """Without the lock, the tables are made twice and the database is broken for good."""
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=_open, args=(tmp_path,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    found = open_store(TRACKING, tmp_path).client.search_experiments()
    assert len([entry for entry in found if entry.name.startswith("of ")]) == 3


def test_the_ui_can_read_while_runs_are_written(root: Path) -> None:
    """Write-ahead logging, set once, stays."""
    with sqlite3.connect(root / "mlflow" / "mlflow.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.slow
def test_a_database_that_a_kill_left_half_made_is_made_again(tmp_path: Path) -> None:
    """It has a table and no more."""
    database = tmp_path / "mlflow" / "mlflow.db"
    database.parent.mkdir()
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32))")
    assert open_store(TRACKING, tmp_path).client.search_experiments()


def test_a_database_with_runs_is_never_taken_for_a_broken_one(root: Path, store: MlflowStore) -> None:
    """For example one that was restored from a dump, which has no write-ahead log."""
    run = store.client.create_run("0").info.run_id
    restored = root / "restored" / "mlflow" / "mlflow.db"
    restored.parent.mkdir(parents=True)
    with sqlite3.connect(root / "mlflow" / "mlflow.db") as old, sqlite3.connect(restored) as new:
        new.executescript("\n".join(old.iterdump()))
    make_embedded(root / "restored")
    assert open_store(TRACKING, root / "restored").client.get_run(run).info.run_id == run


def test_a_file_that_is_no_database_is_an_error_and_stays(tmp_path: Path) -> None:
    """It may be someone's."""
    database = tmp_path / "mlflow" / "mlflow.db"
    database.parent.mkdir()
    database.write_bytes(b"not a database, but long enough to be taken for one" * 100)
    with pytest.raises(TrackingError, match=r"mlflow\.db: cannot be opened: file is not a database"):
        make_embedded(tmp_path)
    assert database.read_bytes().startswith(b"not a database")


def test_a_server_that_is_down_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the address and what to do."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    tracking = msgspec.structs.replace(TRACKING, uri=NOBODY)
    with pytest.raises(TrackingError) as caught:
        open_store(tracking, tmp_path)
    text = str(caught.value)
    assert text == (
        f"MLflow at {NOBODY} does not answer: start it and run again, which logs what is missing (the "
        "results are kept), or use tracking=mlflow or tracking=disabled"
    )


def test_a_database_that_cannot_be_opened_is_told_in_one_line(tmp_path: Path) -> None:
    """MLflow's own error is many lines."""
    tracking = msgspec.structs.replace(TRACKING, uri=f"sqlite:///{tmp_path}/no/such/folder/x.db")
    (tmp_path / "no").write_text("a file in the way")
    with pytest.raises(TrackingError) as caught:
        open_store(tracking, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_password_is_not_shown() -> None:
    """Records and messages may be read by anyone."""
    assert shown_uri("postgresql://me:secret@db.example.org:5432/mlflow") == (
        "postgresql://me@db.example.org:5432/mlflow"
    )
    assert (
        shown_uri("postgresql://me:secret@db.example.org/mlflow") == "postgresql://me@db.example.org/mlflow"
    )


def test_embedded_is_a_file_under_the_root(tmp_path: Path) -> None:
    """Other addresses are taken as they are."""
    assert backend_uri("embedded", tmp_path) == f"sqlite:///{tmp_path}/mlflow/mlflow.db"
    assert backend_uri(NOBODY, tmp_path) == NOBODY


def test_artifacts_of_the_embedded_store_lie_under_the_root(root: Path, store: MlflowStore) -> None:
    """A name that is no file name is made one."""
    for name in ("kernelmill", "team/kernels?"):
        identity = experiment_id(store, name, {})
        location = Path(store.client.get_experiment(identity).artifact_location)
        assert location.parent == root / "mlflow" / "artifacts"


def test_a_deleted_experiment_comes_back(store: MlflowStore) -> None:
    """MLflow would refuse to make another one of that name."""
    first = experiment_id(store, "kernelmill", {"note": "a"})
    store.client.delete_experiment(first)
    assert experiment_id(store, "kernelmill", {"note": "b"}) == first
    assert store.client.get_experiment(first).tags["note"] == "b"


def test_a_lock_that_stays_held_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the file."""
    monkeypatch.setattr("pipeline.track.stores.store_locks.LOCK_SECONDS", 0.1)
    with (
        file_lock(tmp_path, "log"),
        pytest.raises(TrackingError, match=r"log\.lock: still held"),
        file_lock(tmp_path, "log"),
    ):
        pass


def made(root: Path) -> Path:
    """A database of some pages."""
    path = database(root)
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (id TEXT)")
        connection.executemany("INSERT INTO runs VALUES (?)", [(f"{number:0100d}",) for number in range(500)])
        connection.commit()
    return path


def test_a_whole_one_is_left_alone(tmp_path: Path) -> None:
    """And is believed to hold what was logged."""
    path = made(tmp_path)
    assert holds(f"sqlite:///{path.resolve()}", tmp_path)
    move_damaged_aside(tmp_path)
    assert [file.name for file in path.parent.iterdir()] == ["mlflow.db"]


def test_a_cut_one_is_moved_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is kept, and the user told under which name."""
    path = made(tmp_path)
    content = path.read_bytes()[:9000]
    path.write_bytes(content)
    assert not looks_whole(path)
    assert not holds(f"sqlite:///{path.resolve()}", tmp_path)
    move_damaged_aside(tmp_path)
    assert not path.exists()
    assert (path.parent / "mlflow.db.damaged-1").read_bytes() == content
    assert "damaged, kept as mlflow.db.damaged-1; a new one is made" in capsys.readouterr().err


def test_damage_inside_is_found_by_looking(tmp_path: Path) -> None:
    """The size says nothing, SQLite's own check does."""
    path = made(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xff" * 4096 + content[12288:])
    assert looks_whole(path)
    move_damaged_aside(tmp_path)
    assert not path.exists()


def test_a_locked_one_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody works in it."""
    path = made(tmp_path)
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda file, timeout: connect(file, timeout=0.1))
    with closing(connect(path)) as holder:
        holder.isolation_level = None
        holder.execute("BEGIN EXCLUSIVE")
        move_damaged_aside(tmp_path)
    assert path.exists()


def test_a_missing_one_holds_nothing(tmp_path: Path) -> None:
    """A server's word is taken, an absent file's not."""
    assert not holds(f"sqlite:///{database(tmp_path).resolve()}", tmp_path)
    assert holds("http://host:5000", tmp_path)
