"""The machine's trouble is told from a kernel's, as far as that can be."""

import resource
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from pipeline.records.errors import StoreError, WorkerError
from pipeline.records.outcome import Failure, Outcome
from pipeline.sandbox.processes import machine_resources
from pipeline.sandbox.processes.supervisor import Exit


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome.CRASHED, "SIGKILL (rows=5, normal, seed 17)"),
        (Outcome.CRASHED, "its supervisor was killed (while it was loaded)"),
        (Outcome.COMPILE_ERROR, "fatal error: error writing to /tmp/x.s: No space left on device"),
        (Outcome.COMPILE_ERROR, "g++: fatal error: Killed signal terminated program cc1plus"),
        (Outcome.COMPILE_ERROR, "the compiler ended with code -9: it said nothing"),
        (Outcome.COMPILE_ERROR, "`ptxas` failed with error code -9"),
        (Outcome.LAUNCH_ERROR, "OSError: [Errno 24] Too many open files"),
        (Outcome.LAUNCH_ERROR, "RuntimeError: can't start new thread"),
    ],
)
def test_doubtful(outcome: Outcome, reason: str, tmp_path: Path) -> None:
    """What a user, a scheduler or a full disk does is tried again."""
    assert machine_resources.is_doubtful(Failure(outcome=outcome, reason=reason), tmp_path)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome.CRASHED, "SIGSEGV (rows=5, normal, seed 17)"),
        (Outcome.CRASHED, "SIGABRT"),
        (Outcome.TIMEOUT, "not finished after 4 s of its own time, all calls together"),
        (Outcome.COMPILE_ERROR, "softmax.cpp:3:1: error: expected ';' before '}' token"),
        (Outcome.WRONG_VALUE, "got 1, expected 2"),
    ],
)
def test_not_doubtful(outcome: Outcome, reason: str, tmp_path: Path) -> None:
    """A kernel's own failure costs no second try."""
    assert not machine_resources.is_doubtful(Failure(outcome=outcome, reason=reason), tmp_path)
    assert not machine_resources.is_doubtful(None, tmp_path)


def test_what_a_crash_wrote(tmp_path: Path) -> None:
    """OpenMP exits where it gets no thread, and only its log says why; other outcomes' logs do not count."""
    (tmp_path / "log.txt").write_text(
        "x" * 10_000 + "\nlibgomp: Thread creation failed: Resource temporarily unavailable\n"
    )
    crash = Failure(outcome=Outcome.CRASHED, reason="exit code 1", log="log.txt")
    assert machine_resources.is_doubtful(crash, tmp_path)
    assert not machine_resources.is_doubtful(msgspec.structs.replace(crash, log=None), tmp_path)
    assert not machine_resources.is_doubtful(msgspec.structs.replace(crash, log="gone.txt"), tmp_path)
    assert not machine_resources.is_doubtful(
        msgspec.structs.replace(crash, outcome=Outcome.WRONG_VALUE), tmp_path
    )


def test_threads_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate could not compute with a thread for each core: the machine is short of them."""

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(WorkerError, match=r"a thread cannot be started: .* raise the limit of processes"):
        machine_resources.require(tmp_path)


def test_a_kill_comes_from_outside() -> None:
    """SIGKILL does, SIGSEGV does not, and a time limit is ours."""
    assert machine_resources.from_outside(Exit(kind="crashed", code=-9, detail="SIGKILL"))
    assert not machine_resources.from_outside(Exit(kind="crashed", code=-11, detail="SIGSEGV"))
    assert not machine_resources.from_outside(Exit(kind="timeout", code=-9, detail=""))


def test_all_is_well(tmp_path: Path) -> None:
    """On a machine that has all that is needed nothing happens, and nothing is left."""
    machine_resources.require(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the folder, what is free, and what to do."""
    monkeypatch.setattr(machine_resources, "ROOM", 1 << 62)
    with pytest.raises(
        StoreError, match=r"No space left on device \(\d+ MB free, .*free space and run again"
    ):
        machine_resources.require(tmp_path)


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    """It cannot be written to."""
    with pytest.raises(StoreError, match="cannot be written: No such file or directory"):
        machine_resources.require(tmp_path / "missing")


def test_few_descriptors_are_told(tmp_path: Path) -> None:
    """In a process of its own, whose limit is low."""
    code = (
        "import resource; from pathlib import Path\n"
        "from pipeline.sandbox.processes import machine_resources\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))\n"
        f"machine_resources.require(Path({str(tmp_path)!r}))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        "WorkerError: Too many open files" in ended.stderr and "raise the limit (ulimit -n)" in ended.stderr
    )
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 20


def test_threads_that_look_at_once(tmp_path: Path) -> None:
    """Their processes do not wait for each other's: verify's two workers looked together and never ended."""
    code = (
        "import threading; from pathlib import Path\n"
        "from pipeline.sandbox.processes import machine_resources\n"
        f"look = lambda: [machine_resources.require(Path({str(tmp_path)!r})) for _ in range(10)]\n"
        "threads = [threading.Thread(target=look) for _ in range(4)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100
    )
    assert (ended.returncode, ended.stderr) == (0, "")
