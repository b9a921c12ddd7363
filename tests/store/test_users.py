"""A folder on a shared file system, used by several users with their own habits (umask)."""

import os
import shutil
import stat
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.records import environment
from pipeline.store.atomic import write_atomic
from pipeline.store.entries import bring_entries, find_entry, new_entry, put_record
from tests.store.test_shared_store import FINE, Note

GROUP, ADA, BOB, EVE = 64_001, 64_002, 64_003, 64_004  # ids that nobody has
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root to become other users")


@pytest.fixture
def folder() -> Iterator[Path]:
    """The group's folder, as the docs say it is made, in one that every user can reach."""
    top = Path(tempfile.mkdtemp(prefix="km-users-"))
    top.chmod(0o755)
    shared = top / "shared"
    shared.mkdir()
    os.chown(shared, 0, GROUP)
    shared.chmod(0o2775)
    yield shared
    shutil.rmtree(top)


def _as_user(user: int, umask: int, work: Callable[[Path], None], folder: Path, group: int = GROUP) -> None:
    """Do it in a process that belongs to that user, with a checkout of its own."""
    checkout = folder.parent / f"user{user}"
    checkout.mkdir(exist_ok=True)
    os.chown(checkout, user, group)
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(group)
            os.setuid(user)
            os.umask(umask)
            os.environ[environment.SHARED_STORE] = str(folder)
            work(checkout / "artifacts")
            os._exit(0)
        except BaseException:
            traceback.print_exc(file=sys.stderr)
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _store(entry: str) -> Callable[[Path], None]:
    def work(root: Path) -> None:
        with new_entry(root, "compile", entry) as scratch:
            (scratch / "kernel.so").write_bytes(b"\x7fELF")
            put_record(scratch, Note(entry=entry, result=FINE))

    return work


def _find(*entries: str) -> Callable[[Path], None]:
    def work(root: Path) -> None:
        bring_entries(root, "compile", entries)
        assert all(find_entry(root, "compile", entry, Note) is not None for entry in entries)

    return work


def test_two_users_of_a_group_share(folder: Path) -> None:
    """One whose umask lets nobody in, one whose umask lets the group read: both write in both's folders."""
    _as_user(ADA, 0o077, _store("abcd"), folder)
    _as_user(BOB, 0o027, _store("abce"), folder)  # in the folder that the first one made
    _as_user(ADA, 0o077, _find("abcd", "abce"), folder)
    _as_user(BOB, 0o027, _find("abcd", "abce"), folder)
    for path in folder.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert path.stat().st_gid == GROUP
        assert mode == (0o2775 if path.is_dir() else 0o664), path
    assert {path.stat().st_uid for path in folder.rglob("*.tar.gz")} == {ADA, BOB}


def test_who_may_only_read_reads(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """And is told once that nothing of his is shared."""
    _as_user(ADA, 0o077, _store("abcd"), folder)
    _as_user(EVE, 0o022, _find("abcd"), folder, group=EVE)

    def store(root: Path) -> None:
        for entry in ("abcf", "abd0"):
            _store(entry)(root)
            assert find_entry(root, "compile", entry, Note) is not None

    _as_user(EVE, 0o022, store, folder, group=EVE)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("going on without the shared store: ")
    assert "cannot be written: Permission denied; get the right to write there" in lines[0]


def test_who_may_not_read_goes_on_alone(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A group that keeps to itself."""
    folder.chmod(0o2770)
    _as_user(ADA, 0o022, _store("abcd"), folder)
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")} == {0o2770, 0o660}

    def alone(root: Path) -> None:
        bring_entries(root, "compile", ["abcd"])
        assert find_entry(root, "compile", "abcd", Note) is None
        _store("abcd")(root)

    _as_user(EVE, 0o022, alone, folder, group=EVE)
    said = capfd.readouterr().err
    assert "going on without the shared store: " in said
    assert "Permission denied" in said


def test_a_folder_of_ones_own_is_as_it_was(tmp_path: Path) -> None:
    """Without the set-group-ID bit: the owner writes, all may read."""
    write_atomic(tmp_path / "a" / "b.json", b"{}")
    assert stat.S_IMODE((tmp_path / "a" / "b.json").stat().st_mode) == 0o644


def test_a_checkout_of_a_group_is_shared_as_well(folder: Path) -> None:
    """Two users in one checkout: what one made, the other may replace."""
    _as_user(ADA, 0o077, lambda _: write_atomic(folder / "plan" / "x.json", b"1"), folder)
    _as_user(BOB, 0o077, lambda _: write_atomic(folder / "plan" / "x.json", b"2"), folder)
    assert (folder / "plan" / "x.json").read_bytes() == b"2"
