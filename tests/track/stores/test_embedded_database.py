"""A damaged embedded database is noticed, kept aside, and never taken for an empty one."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.track.stores.embedded_database import database, holds, looks_whole, move_damaged_aside


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
