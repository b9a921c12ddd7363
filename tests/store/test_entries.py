"""The store holds whole entries or none, whatever happens while one is written."""

import threading
from pathlib import Path

import pytest

from pipeline.records.errors import StoreError
from pipeline.records.layout import entry_path
from pipeline.records.record import Record, to_json
from pipeline.store.atomic import write_atomic
from pipeline.store.entries import find_entry, new_entry, put_record


class Note(Record, kw_only=True):
    """A record to store."""

    text: str


def store(root: Path, entry: str, text: str) -> None:
    """Put one entry."""
    with new_entry(root, "compile", entry) as folder:
        (folder / "log.txt").write_text(text)
        put_record(folder, Note(text=text))


def test_what_is_put_is_found(tmp_path: Path) -> None:
    """An entry comes back with its files."""
    store(tmp_path, "abcd", "one")
    assert find_entry(tmp_path, "compile", "abcd", Note) == Note(text="one")
    assert (entry_path(tmp_path, "compile", "abcd") / "log.txt").read_text() == "one"


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    """No entry is not an error."""
    assert find_entry(tmp_path, "compile", "abcd", Note) is None


def test_the_first_writer_wins(tmp_path: Path) -> None:
    """Entries are content-addressed: a second writer changes nothing."""
    store(tmp_path, "abcd", "one")
    store(tmp_path, "abcd", "two")
    assert find_entry(tmp_path, "compile", "abcd", Note) == Note(text="one")


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    """A half-made entry is never seen and leaves no litter."""
    with pytest.raises(KeyError), new_entry(tmp_path, "compile", "abcd") as folder:
        (folder / "file").write_text("half")
        raise KeyError
    assert find_entry(tmp_path, "compile", "abcd", Note) is None
    assert list(entry_path(tmp_path, "compile", "abcd").parent.iterdir()) == []


def test_an_entry_needs_its_record(tmp_path: Path) -> None:
    """Closing an entry without a record is a bug that is told."""
    with pytest.raises(StoreError, match="no record"), new_entry(tmp_path, "compile", "abcd"):
        pass


@pytest.mark.parametrize("content", [b"", b'{"text": 1}', to_json(Note(text="x"))[:-2]])
def test_a_broken_entry_is_made_again(tmp_path: Path, content: bytes) -> None:
    """A corrupt record counts as absent and makes way for a new one."""
    store(tmp_path, "abcd", "one")
    (entry_path(tmp_path, "compile", "abcd") / "record.json").write_bytes(content)
    assert find_entry(tmp_path, "compile", "abcd", Note) is None
    store(tmp_path, "abcd", "two")
    assert find_entry(tmp_path, "compile", "abcd", Note) == Note(text="two")


def test_racing_writers(tmp_path: Path) -> None:
    """Many writers of one entry leave exactly one whole entry."""
    threads = [threading.Thread(target=store, args=(tmp_path, "abcd", str(n))) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = find_entry(tmp_path, "compile", "abcd", Note)
    assert found is not None
    folder = entry_path(tmp_path, "compile", "abcd")
    assert (folder / "log.txt").read_text() == found.text
    assert [path.name for path in folder.parent.iterdir()] == ["abcd"]


def test_a_place_that_refuses_is_named(tmp_path: Path) -> None:
    """No permission, no folder, no space: one line with the path, the target untouched."""
    obstacle = tmp_path / "file"
    obstacle.write_text("")
    with pytest.raises(StoreError, match=r"file/out\.json: cannot be written: "):
        write_atomic(obstacle / "out.json", b"x")


def test_atomic_write_replaces(tmp_path: Path) -> None:
    """The new content is there, and only it."""
    write_atomic(tmp_path / "a" / "out.json", b"one")
    write_atomic(tmp_path / "a" / "out.json", b"two")
    assert (tmp_path / "a" / "out.json").read_bytes() == b"two"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["out.json"]
