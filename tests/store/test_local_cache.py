"""What is kept is found again as it was, or not at all."""

import pytest

from pipeline.records.layout import entry_path
from pipeline.records.record import Record
from pipeline.store.local_cache import find_kept, keep


class Small(Record, frozen=True, kw_only=True):
    key: str
    value: int


KEY = "aa11"


@pytest.fixture
def folder(tmp_path):
    """Of a record that was kept."""
    keep(tmp_path, "aggregate", Small(key=KEY, value=3), {"more.bin": b"more"})
    return entry_path(tmp_path, "aggregate", KEY)


def test_is_found_again(tmp_path, folder):
    """With its files; another key has nothing."""
    assert find_kept(tmp_path, "aggregate", KEY, Small) == Small(key=KEY, value=3)
    assert (folder / "more.bin").read_bytes() == b"more"
    assert find_kept(tmp_path, "aggregate", "bb22", Small) is None


@pytest.mark.parametrize("name", ["record.json", "more.bin"])
def test_damage_is_found(name, tmp_path, folder, capsys):
    """It is removed, and named in one line."""
    (folder / name).write_bytes(b"else")
    assert find_kept(tmp_path, "aggregate", KEY, Small) is None
    assert not folder.exists()
    assert capsys.readouterr().err == f"{folder}: damaged ({name} is not what was written), made again\n"


def test_is_not_believed_without_its_seal(tmp_path, folder, capsys):
    """Entries of variants are, because earlier versions made some: these never were without."""
    (folder / "seal.json").unlink()
    assert find_kept(tmp_path, "aggregate", KEY, Small) is None
    assert capsys.readouterr().err == f"{folder}: damaged (not what its name says), made again\n"


def test_another_key_is_stale(tmp_path, folder):
    """A whole record in the folder of another one is not what was asked for."""
    other = entry_path(tmp_path, "aggregate", "bb22")
    other.parent.mkdir(parents=True)
    folder.rename(other)
    assert find_kept(tmp_path, "aggregate", "bb22", Small) is None
    assert not other.exists()
