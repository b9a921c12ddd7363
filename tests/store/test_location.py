"""Paths and URLs behave alike."""

from pathlib import Path

import pytest

from pipeline.records.errors import StoreError
from pipeline.store.location import Location, shown
from tests.store import file_systems


@pytest.fixture(autouse=True)
def _fresh() -> None:
    file_systems.register()


@pytest.fixture(params=["path", "file", "memory", "ftplike"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """The same tests for all."""
    urls = {"path": str(tmp_path / "shared"), "file": f"file://{tmp_path}/shared"}
    return Location(urls.get(request.param, f"{request.param}://bucket/shared"))


def test_what_is_put_is_read(place: Location) -> None:
    """By name; what is not there is left out."""
    assert list(place.read(["store/a", "store/b"])) == []
    place.put("store/a", b"one")
    place.put("store/x/c", b"three")
    assert dict(place.read(["store/a", "store/b", "store/x/c"])) == {"store/a": b"one", "store/x/c": b"three"}
    assert place.has("store/a")
    assert not place.has("store/b")


def test_more_files_than_are_asked_for_together(place: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    """All come."""
    monkeypatch.setattr("pipeline.store.location.AT_ONCE", 2)
    names = [f"f/{number}" for number in range(5)]
    for name in names:
        place.put(name, name.encode())
    assert dict(place.read(names)) == {name: name.encode() for name in names}


def test_it_is_listed_with_sizes(place: Location) -> None:
    """Below a folder; an empty one is no error."""
    assert place.sizes("store") == {}
    place.put("store/a/b", b"12345")
    place.put("other/a", b"1")
    assert place.sizes("store") == {"store/a/b": 5}
    place.remove("store/a/b")
    assert place.sizes("store") == {}


def test_no_name_is_seen_before_its_file_is_whole() -> None:
    """Where files grow while they are written, another name is written first."""
    Location("ftplike://bucket/shared").put("store/a", b"content")
    assert file_systems.Ftp.seen == [{name for names in file_systems.Ftp.seen for name in names}]
    assert not any(name.endswith("/a") for name in file_systems.Ftp.seen[0])
    assert list(file_systems.Ftp.store) == ["/bucket/shared/store/a"]


def test_a_protocol_that_nobody_speaks_is_told() -> None:
    """With the address."""
    with pytest.raises(StoreError, match=r"^carrier-pigeon://coop: cannot be opened: Protocol not known"):
        Location("carrier-pigeon://coop")


def test_a_package_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """fsspec says which one."""
    import sys

    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(StoreError, match=r"^s3://bucket/x: cannot be opened: Install s3fs"):
        Location("s3://bucket/x")


def test_a_refusal_is_told_in_one_line() -> None:
    """Whatever class of error the file system has."""
    place = Location("refusing://bucket")
    with pytest.raises(StoreError, match="^refusing://bucket: Access Denied$"):
        list(place.read(["a"]))
    with pytest.raises(StoreError, match="^refusing://bucket: Access Denied$"):
        place.has("a")


def test_a_password_is_not_shown() -> None:
    """Lines are read by many."""
    assert shown("sftp://me:secret@host/path") == "sftp://me@host/path"
    assert shown("s3://bucket/a@b") == "s3://bucket/a@b"
    assert shown("/plain/path") == "/plain/path"
