"""The sandbox turns every way to end into an `Exit`, and leaves no process behind."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import torch

from pipeline.sandbox.processes.fork_server import ChildEnded, ForkServer, Limits
from pipeline.sandbox.processes.scheduling_delay import waited

LIMITS = Limits(seconds=20.0, memory=512 << 20, output=1 << 20)


@pytest.fixture
def server() -> Iterator[ForkServer]:
    """A fork server of this process."""
    with ForkServer() as server:
        yield server


def start(server: ForkServer, name: str, folder: Path, limits: Limits = LIMITS):
    """Start one of the children of `children.py`."""
    return server.start(f"tests.sandbox.children:{name}", limits=limits, log=folder / f"{name}.log")


def test_values_go_there_and_back(server: ForkServer, tmp_path: Path) -> None:
    """Plain values survive the round trip; closing the channel ends the child."""
    child = start(server, "echo", tmp_path)
    for value in (1, "text", [1.5, None], {"key": b"bytes"}):
        child.send(value)
        assert child.receive(10) == value
    assert child.stop().kind == "ok"


def test_threads_work_after_the_fork(tmp_path: Path) -> None:
    """A child can run torch's OpenMP code, also where its owner did before it forked."""
    assert use_threads() == 256.0**3
    with ForkServer() as server:
        assert start(server, "use_torch", tmp_path).receive(20) == 256.0**3


def use_threads() -> float:
    """A product that two threads share."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        return float((torch.ones(256, 256) @ torch.ones(256, 256)).sum())
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("name", "kind", "detail"),
    [
        ("crash", "crashed", "SIGSEGV"),
        pytest.param("allocate", "out_of_memory", "536870912", marks=pytest.mark.slow),
        ("chatter", "output_limit", "1048576"),
        ("fail", "error", "ValueError: a reason"),
        ("leave", "ok", ""),
    ],
)
def test_every_end_is_told(server: ForkServer, tmp_path: Path, name: str, kind: str, detail: str) -> None:
    """A child that ends without an answer says how."""
    with pytest.raises(ChildEnded) as ended:
        start(server, name, tmp_path).receive(20)
    assert ended.value.exit.kind == kind
    assert detail in ended.value.exit.detail


@pytest.mark.slow
def test_a_driver_may_reserve_addresses(server: ForkServer, tmp_path: Path) -> None:
    """Only memory that it uses counts then."""
    limits = msgspec.structs.replace(LIMITS, reserves=True)
    child = start(server, "reserve", tmp_path, limits)
    assert child.receive(20) == 1 << 40
    with pytest.raises(ChildEnded) as ended:
        child.receive(20)
    assert ended.value.exit.kind == "out_of_memory"


def test_time_limit(server: ForkServer, tmp_path: Path) -> None:
    """The limit counts from the start and kills."""
    child = start(server, "hang", tmp_path, Limits(seconds=0.3, output=1 << 20))
    with pytest.raises(ChildEnded) as ended:
        child.receive(20)
    assert ended.value.exit.kind == "timeout"
    assert "0.3 s" in ended.value.exit.detail


def test_no_answer_in_time(server: ForkServer, tmp_path: Path) -> None:
    """A child that does not answer in the receiver's time is killed."""
    child = start(server, "hang", tmp_path)
    with pytest.raises(ChildEnded, match="no answer within 0.2 s"):
        child.receive(0.2)


def test_more_time(server: ForkServer, tmp_path: Path) -> None:
    """A receiver may grant more time, and is asked again until it grants none."""
    grants = [0.1, 0.1, 0.0]
    child = start(server, "hang", tmp_path)
    with pytest.raises(ChildEnded, match="no answer within 0.1 s"):
        child.receive(0.1, more=lambda: grants.pop(0))
    assert grants == []


@pytest.mark.slow
def test_waiting_for_a_core_is_not_sleeping() -> None:
    """Processes that share a core wait for it about half of the time; one that sleeps does not wait."""
    command = "import os, time; os.sched_setaffinity(0, {0}); end = time.time() + 2"
    command += "\nwhile time.time() < end: pass"
    busy = [subprocess.Popen([sys.executable, "-c", command]) for _ in range(2)]
    sleeping = subprocess.Popen(["sleep", "60"])
    time.sleep(1.2)
    found = [waited(process.pid) for process in busy]
    idle = waited(sleeping.pid)
    sleeping.kill()
    for process in (*busy, sleeping):
        process.wait()
    if not any(found):
        pytest.skip("this platform does not tell")
    assert max(found) > 0.2
    assert idle < 0.1
    assert waited(busy[0].pid) == 0.0


def test_unexpected_answer(server: ForkServer, tmp_path: Path) -> None:
    """An answer of another type ends the child instead of reaching its judge."""
    with pytest.raises(ChildEnded, match="unexpected answer"):
        start(server, "garbage", tmp_path).receive(10, Limits)


def test_orphans_are_killed(server: ForkServer, tmp_path: Path) -> None:
    """A process that fled into its own session ends with the child."""
    child = start(server, "orphan", tmp_path)
    pid = child.receive(10)
    child.stop()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


def test_environment_and_folder(server: ForkServer, tmp_path: Path) -> None:
    """What the owner asks for is set in the child alone."""
    child = server.start(
        "tests.sandbox.children:where",
        limits=LIMITS,
        log=tmp_path / "log",
        environment={"KERNELMILL_TEST": "yes"},
        scratch=tmp_path,
    )
    assert child.receive(10) == [str(tmp_path), "yes"]
    assert "KERNELMILL_TEST" not in os.environ


def test_many_at_once(server: ForkServer, tmp_path: Path) -> None:
    """Children are independent of each other."""
    children = [start(server, "echo", tmp_path) for _ in range(8)]
    for number, child in enumerate(children):
        child.send(number)
    assert [child.receive(10) for child in children] == list(range(8))
    for child in children:
        assert child.stop().kind == "ok"


def test_preload_is_for_children_only(tmp_path: Path) -> None:
    """Modules and environment of the server reach its children and not its owner."""
    with ForkServer(preload=("tabnanny", "no.such.module"), environment={"KERNELMILL_TEST": "yes"}) as server:
        assert start(server, "preloaded", tmp_path).receive(10) == [True, "yes"]
    assert "tabnanny" not in sys.modules
    assert "KERNELMILL_TEST" not in os.environ


def test_nothing_of_the_owner_is_open(tmp_path: Path) -> None:
    """A file that the owner has open when it forks the server cannot be reached from a child."""
    secret = tmp_path / "secret"
    with secret.open("w"), ForkServer() as server:
        leads = start(server, "descriptors", tmp_path).receive(10)
    assert str(secret) not in leads
    assert sum(lead.startswith("socket:") for lead in leads) == 1, "only the channel"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux")
def test_the_owner_is_concealed() -> None:
    """Who has a fork server cannot be traced by its children: its memory is for itself."""
    with ForkServer():
        assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0  # PR_GET_DUMPABLE


def test_shared_descriptors(server: ForkServer, tmp_path: Path) -> None:
    """What an owner shares is there, and nothing else of it."""
    (tmp_path / "file").write_text("text")
    with (tmp_path / "file").open() as stream:
        child = server.start(
            "tests.sandbox.children:shared", limits=LIMITS, log=tmp_path / "log", shared=[stream.fileno()]
        )
        assert child.receive(10) == "text"


@pytest.mark.slow
def test_too_many_processes(server: ForkServer, tmp_path: Path) -> None:
    """A child that starts processes without end is stopped with all of them, soon."""
    limits = Limits(seconds=20.0, processes=16)
    child = start(server, "multiply", tmp_path, limits)
    with pytest.raises(ChildEnded) as ended:
        child.receive(10)
    assert (ended.value.exit.kind, ended.value.exit.detail) == (
        "process_limit",
        "more than 16 processes at once",
    )
