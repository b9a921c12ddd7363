"""Two checkouts, and a store that they share."""

from pathlib import Path

import pytest

from pipeline.records import environment
from pipeline.records.errors import StoreError
from pipeline.records.layout import entry_path, output_path, spec_path
from pipeline.records.outcome import Failure, Outcome
from pipeline.records.record import Record
from pipeline.store.atomic import write_atomic
from pipeline.store.entries import bring_entries, find_entry, new_entry, put_record
from pipeline.store.integrity import is_damaged, write_sealed
from pipeline.store.outputs import is_whole, put_output
from pipeline.store.shared_store import NOT_SHARED, Location, entry_name, shared_store, shown
from tests.store import file_systems


class Fine(Record, frozen=True, kw_only=True, tag="passed"):
    """A result."""

    by: str = "us"


class Note(Record, frozen=True, kw_only=True):
    """A stored record."""

    entry: str
    result: Failure | Fine


FINE = Fine()


class Written(Record, frozen=True, kw_only=True):
    """A stage's output."""

    key: str
    round: int
    records: tuple[Note, ...]


@pytest.fixture(params=["path", "memory", "ftplike"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The shared store; both checkouts name it."""
    file_systems.register()
    path = tmp_path / "shared"
    url = str(path) if request.param == "path" else f"{request.param}://bucket/{tmp_path.name}"
    monkeypatch.setenv(environment.SHARED_STORE, url)
    return url


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """One checkout's store."""
    return tmp_path / "ours" / "artifacts"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """The other one's, in another folder."""
    return tmp_path / "somewhere" / "else" / "artifacts"


def _store(root: Path, entry: str, result: Failure | Fine = FINE) -> Note:
    note = Note(entry=entry, result=result)
    with new_entry(root, "compile", entry) as folder:
        (folder / "sources").mkdir()
        (folder / "sources" / "k.cpp").write_text("int x;")
        (folder / "kernel.so").write_bytes(b"\x7fELF" + entry.encode())
        put_record(folder, note)
    return note


def _bring_output(root: Path, key: str) -> bool:
    shared = shared_store()
    assert shared is not None
    return bool(shared.bring_outputs(root, "compile", [(key, 0)]))


def _write(root: Path, notes: tuple[Note, ...]) -> str:
    """A stage's output whose key is that of its spec."""
    from pipeline.records.record import digest_bytes

    spec = b'{"the": "spec"}'
    key = f"softmax-{digest_bytes(spec)}"
    write_atomic(spec_path(root, "compile", key), spec)
    output = Written(key=key, round=0, records=notes)
    put_output(output_path(root, "compile", key, 0), "compile", output, spec=spec_path(root, "compile", key))
    return key


def test_an_entry_of_one_is_found_by_the_other(url: str, ours: Path, theirs: Path) -> None:
    """With all its files."""
    note = _store(ours, "abcd")
    assert find_entry(theirs, "compile", "abcd", Note) is None
    bring_entries(theirs, "compile", ["abcd", "not there"])
    assert find_entry(theirs, "compile", "abcd", Note) == note
    assert (entry_path(theirs, "compile", "abcd") / "sources" / "k.cpp").read_text() == "int x;"


def test_what_was_brought_is_sealed(url: str, ours: Path, theirs: Path) -> None:
    """Damage is noticed there as well; a seal that an earlier output left behind is replaced."""
    key = _write(ours, (_store(ours, "abcd"),))
    path = output_path(theirs, "compile", key, 0)
    write_sealed(path, b"an earlier one")
    path.unlink()
    assert _bring_output(theirs, key)
    assert not is_damaged(path)
    path.write_bytes(path.read_bytes()[:-1])
    assert is_damaged(path)


def test_without_a_shared_store_nothing_travels(
    ours: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is off by default."""
    monkeypatch.delenv(environment.SHARED_STORE, raising=False)
    _store(ours, "abcd")
    bring_entries(theirs, "compile", ["abcd"])
    assert find_entry(theirs, "compile", "abcd", Note) is None


def test_the_first_one_stays(url: str, ours: Path, theirs: Path) -> None:
    """Two measured the same at the same time: each keeps its own, the third gets the first."""
    first = _store(ours, "abcd", Fine(by="the first"))
    second = _store(theirs, "abcd", Fine(by="the second"))
    third = ours.parent / "third"
    bring_entries(third, "compile", ["abcd"])
    assert find_entry(theirs, "compile", "abcd", Note) == second
    assert find_entry(third, "compile", "abcd", Note) == first


@pytest.mark.parametrize("outcome", sorted(NOT_SHARED))
def test_what_may_be_the_machines_fault_stays_here(
    url: str, ours: Path, theirs: Path, outcome: Outcome
) -> None:
    """Somebody else tries again; and an output that holds it is not shared as a whole."""
    failed = _store(ours, "abcd", Failure(outcome=outcome, reason="busy"))
    key = _write(ours, (failed,))
    bring_entries(theirs, "compile", ["abcd"])
    assert find_entry(theirs, "compile", "abcd", Note) is None
    assert not _bring_output(theirs, key)


def test_an_honest_failure_is_shared(url: str, ours: Path, theirs: Path) -> None:
    """A compiler's error is the same everywhere."""
    failed = _store(ours, "abcd", Failure(outcome=Outcome.COMPILE_ERROR, reason="x.cpp:1: error"))
    bring_entries(theirs, "compile", ["abcd"])
    assert find_entry(theirs, "compile", "abcd", Note) == failed


def test_an_output_comes_with_its_entries(url: str, ours: Path, theirs: Path) -> None:
    """Byte for byte, and the spec's name is checked before it goes."""
    key = _write(ours, (_store(ours, "abcd"), _store(ours, "abce")))
    assert _bring_output(theirs, key)
    name = output_path(Path(), "compile", key, 0)
    assert (theirs / name).read_bytes() == (ours / name).read_bytes()
    assert find_entry(theirs, "compile", "abce", Note) is not None


def test_an_output_whose_entry_is_gone_does_not_come(url: str, ours: Path, theirs: Path) -> None:
    """The stage then runs, and finds the others."""
    key = _write(ours, (_store(ours, "abcd"), _store(ours, "abce")))
    shared = shared_store()
    assert shared is not None
    shared.place.remove(entry_name("compile", "abce"))
    assert not _bring_output(theirs, key)
    assert not output_path(theirs, "compile", key, 0).exists()
    assert find_entry(theirs, "compile", "abcd", Note) is not None


def test_an_absent_device_has_no_entry(url: str, ours: Path, theirs: Path) -> None:
    """Its output is shared all the same."""
    absent = Failure(outcome=Outcome.DEVICE_UNAVAILABLE, reason="no sm_90 device on this machine")
    key = _write(ours, (Note(entry="ffff", result=absent),))
    assert _bring_output(theirs, key)


def test_a_spec_of_another_name_is_not_shared(url: str, ours: Path, theirs: Path) -> None:
    """A stage that was run by hand on `S.json` must not become everybody's `S`."""
    spec = ours / "S.json"
    write_atomic(spec, b"{}")
    assert not is_whole(spec)
    output = Written(key="S", round=0, records=())
    put_output(output_path(ours, "compile", "S", 0), "compile", output, spec=spec)
    assert not _bring_output(theirs, "S")


def test_a_damaged_one_is_made_again(
    url: str, ours: Path, theirs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told, it makes way, and the next one that makes it puts it there."""
    _store(ours, "abcd")
    shared = shared_store()
    assert shared is not None
    name = entry_name("compile", "abcd")
    [(_, whole)] = shared.place.read([name])
    shared.place.put(name, whole[:-9])
    bring_entries(theirs, "compile", ["abcd"])
    assert find_entry(theirs, "compile", "abcd", Note) is None
    assert f"{name}: damaged: " in capsys.readouterr().err
    note = _store(theirs, "abcd")
    third = ours.parent / "third"
    bring_entries(third, "compile", ["abcd"])
    assert find_entry(third, "compile", "abcd", Note) == note


def test_a_store_that_refuses_costs_one_line(
    ours: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And is not asked again by this process."""
    file_systems.register()
    monkeypatch.setenv(environment.SHARED_STORE, f"refusing://bucket/{ours}")
    for entry in ("abcd", "abce"):
        bring_entries(ours, "compile", [entry])
        assert find_entry(ours, "compile", entry, Note) is None
        _store(ours, entry)
        assert find_entry(ours, "compile", entry, Note) is not None
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2  # one for reading, one for writing
    assert all(line.startswith("going on without the shared store: ") for line in lines)
    assert all(line.endswith("Access Denied") for line in lines)
    assert len(file_systems.Refusing.asked) == 2


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
    monkeypatch.setattr("pipeline.store.shared_store.AT_ONCE", 2)
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
