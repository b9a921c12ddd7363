"""Damage is noticed before a file is used, whatever it is that was damaged."""

from pathlib import Path

import pytest

from pipeline.records.errors import StoreError
from pipeline.records.layout import entry_path
from pipeline.records.record import Record
from pipeline.store.entries import find_entry, new_entry, put_record, require_entry
from pipeline.store.integrity import damage, discard, is_damaged, seal_folder, write_sealed


class Note(Record, kw_only=True):
    """A record to store."""

    text: str


def stored(root: Path) -> Path:
    """One entry with a binary."""
    with new_entry(root, "compile", "abcd") as folder:
        (folder / "kernel.so").write_bytes(b"machine code")
        put_record(folder, Note(text="one"))
    return entry_path(root, "compile", "abcd")


@pytest.mark.parametrize("name", ["kernel.so", "record.json"])
@pytest.mark.parametrize("content", [b"machine cole", b"machine", b"", None])
def test_a_damaged_entry_is_made_again(
    tmp_path: Path, name: str, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flipped, cut, empty or missing file: the entry is gone, and the user is told which and why."""
    path = stored(tmp_path) / name
    path.unlink() if content is None else path.write_bytes(content)
    assert find_entry(tmp_path, "compile", "abcd", Note) is None
    assert not path.parent.exists()
    said = capsys.readouterr().err
    assert f"damaged ({name}" in said and said.endswith("made again\n")


@pytest.mark.parametrize("content", [b"[]", b"{", b""])
def test_a_damaged_seal_is_damage(tmp_path: Path, content: bytes) -> None:
    """What it vouched for is made again."""
    (stored(tmp_path) / "seal.json").write_bytes(content)
    assert find_entry(tmp_path, "compile", "abcd", Note) is None


def test_an_entry_of_an_earlier_version_is_believed(tmp_path: Path) -> None:
    """It has no seal: what was measured is not lost for that."""
    (stored(tmp_path) / "seal.json").unlink()
    assert find_entry(tmp_path, "compile", "abcd", Note) == Note(text="one")


def test_a_damaged_entry_is_not_used(tmp_path: Path) -> None:
    """Who needs its files is told to run again, and the output that names it goes with it."""
    (stored(tmp_path) / "kernel.so").write_bytes(b"machine cole")
    output = tmp_path / "round0.json"
    output.write_text("{}")
    with pytest.raises(StoreError, match="missing or damaged: run again, and compile makes it again"):
        require_entry(tmp_path, "compile", "abcd", output)
    assert not output.exists()


def test_a_whole_entry_is_used(tmp_path: Path) -> None:
    """Nothing is said, and nothing removed."""
    stored(tmp_path)
    output = tmp_path / "round0.json"
    output.write_text("{}")
    require_entry(tmp_path, "compile", "abcd", output)
    assert output.exists()


@pytest.mark.parametrize("content", ["two", "", "on"])
def test_a_file_that_changed_is_damaged(tmp_path: Path, content: str) -> None:
    """By the digest beside it."""
    path = tmp_path / "round0.json"
    write_sealed(path, b"one")
    assert not is_damaged(path)
    path.write_text(content)
    assert is_damaged(path)


def test_a_file_without_a_seal_is_believed(tmp_path: Path) -> None:
    """It came home in a bundle, which was checked as a whole; an empty one was never written by us."""
    path = tmp_path / "round0.json"
    assert not is_damaged(path)
    path.write_text("{}")
    assert not is_damaged(path)
    path.write_text("")
    assert is_damaged(path)


def test_a_folder_says_what_is_wrong(tmp_path: Path) -> None:
    """In words, for the line that the user sees."""
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "kernel.cpp").write_text("code")
    seal_folder(tmp_path)
    assert damage(tmp_path) is None
    (tmp_path / "sources" / "kernel.cpp").write_text("other")
    assert damage(tmp_path) == "sources/kernel.cpp is not what was written"
    discard(tmp_path / "sources")
    assert damage(tmp_path) == "sources/kernel.cpp is missing"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["seal.json"]
