"""Many small files: each whole or absent, an equal one untouched."""

import os
import stat
from pathlib import Path

import pytest

from pipeline.records.errors import StoreError
from pipeline.store import atomic
from pipeline.store.atomic import FolderWriter
from pipeline.store.temporary import prefix


def test_written_once(tmp_path: Path) -> None:
    """An equal file is not touched, another one is replaced; nothing temporary stays."""
    files = FolderWriter(tmp_path / "plan" / "compile")
    path = tmp_path / "plan" / "compile" / "a.json"
    files.put("a.json", b"one")
    os.utime(path, (0, 0))
    files.put("a.json", b"one")
    assert path.stat().st_mtime == 0
    files.put("a.json", b"two")
    files.put("empty", b"")
    assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == {
        "a.json": b"two",
        "empty": b"",
    }


def test_permissions(tmp_path: Path) -> None:
    """For all who may read the folder, whatever the umask; those of the folder where a group shares it."""
    before = os.umask(0o077)
    try:
        FolderWriter(tmp_path / "own").put("a", b"x")
        (tmp_path / "shared").mkdir()
        (tmp_path / "shared").chmod(0o2775)
        FolderWriter(tmp_path / "shared").put("a", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "own" / "a").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "shared" / "a").stat().st_mode) == 0o664


def test_a_leftover_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead process may have had our number."""
    monkeypatch.setattr(atomic, "_NUMBERS", iter((7, 8)))
    (tmp_path / f"{prefix('a')}7").write_bytes(b"half")
    FolderWriter(tmp_path).put("a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


@pytest.mark.parametrize("call", ["write", "replace", "fchmod"])
def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """One line; the old file stays as it was, and nothing half-made beside it."""
    files = FolderWriter(tmp_path)
    files.put("a", b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, call, fail)
    with pytest.raises(StoreError, match=r"/a: cannot be written: No space left on device; free space"):
        files.put("a", b"new")
    monkeypatch.undo()
    assert [each.name for each in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_folder_in_the_way(tmp_path: Path) -> None:
    """It is said, not overwritten."""
    (tmp_path / "a").mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        FolderWriter(tmp_path).put("a", b"x")
