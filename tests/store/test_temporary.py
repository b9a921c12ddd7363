"""What a killed process left half-made goes; what a living one makes stays."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from pipeline.store.temporary import ABANDONED_SECONDS, SCRATCH, prefix, scratch_folder, sweep

MAKE = "from pipeline.store.temporary import prefix; print(prefix('round0.json'))"


def prefix_of_the_dead() -> str:
    """As a process that has ended would have named it."""
    ended = subprocess.run([sys.executable, "-c", MAKE], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def test_the_dead_are_swept(tmp_path: Path) -> None:
    """Files and folders of an ended process go, those of a living one and all others stay."""
    dead = prefix_of_the_dead()
    (tmp_path / f"{dead}abc").write_text("half")
    (tmp_path / f"{dead}def").mkdir()
    (tmp_path / f"{dead}def" / "kernel.so").write_text("half")
    (tmp_path / f"{SCRATCH}{dead}ghi").mkdir()
    kept = [f"{prefix('round0.json')}abc", "round0.json", ".hidden-file", "kernelmill-0", f"other{dead}x"]
    for name in kept:
        (tmp_path / name).write_text("kept")
    sweep(tmp_path, tmp_path / "missing")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_those_not_yet_buried_are_dead(tmp_path: Path) -> None:
    """A killed process keeps its id until its parent has asked how it ended."""
    with subprocess.Popen([sys.executable, "-c", MAKE], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        path = tmp_path / f"{process.stdout.readline().strip()}abc"
        path.write_text("half")
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        sweep(tmp_path)
        assert not path.exists()


def test_an_id_that_is_taken_again(tmp_path: Path) -> None:
    """What is older than the process of that id was made by another one."""
    path = tmp_path / f"{prefix('round0.json')}abc"
    path.write_text("half")
    before = time.time() - 86400.0 * 365
    os.utime(path, (before, before))
    sweep(tmp_path)
    assert not path.exists()


def test_other_machines_are_given_a_day(tmp_path: Path) -> None:
    """Whether a process of another machine lives cannot be asked."""
    path = tmp_path / ".round0.json.01234567.1-abc"
    path.write_text("half")
    sweep(tmp_path)
    assert path.exists()
    old = time.time() - ABANDONED_SECONDS - 60
    os.utime(path, (old, old))
    sweep(tmp_path)
    assert not path.exists()


def test_a_scratch_folder_is_named_after_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it is swept where the process is killed; where it is not, it goes at the end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch_folder() as folder:
        assert folder.parent == tmp_path and f".{os.getpid()}-" in folder.name
        sweep(tmp_path)
        assert folder.is_dir()
    assert not folder.exists()
