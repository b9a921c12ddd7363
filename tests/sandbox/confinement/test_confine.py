"""A confined child can do its work, and nothing to its owner, the network or the files of others."""

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
import torch  # noqa: F401  (a stage process has it before it forks)

from pipeline.backends.devices.device_registry import device
from pipeline.records.errors import WorkerError
from pipeline.sandbox.confinement import landlock, seccomp
from pipeline.sandbox.confinement.confine import MECHANISMS, Mechanism, confine
from pipeline.sandbox.processes.fork_server import Child, ForkServer, Limits
from tests import driver_stand_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="confinement is Linux's")

LIMITS = Limits(seconds=30.0)
ALLOWED = {
    "scratch", "scratch folder", "temporary file", "read outside", "run a program", "compile", "nothing",
    "pair of sockets", "own limits",
}  # fmt: skip


def started(server: ForkServer, name: str, log: Path, scratch: Path, limits: Limits = LIMITS) -> Child:
    """A function of `tests.sandbox.children`, in a process of its own; `log` is a folder."""
    return server.start(f"tests.sandbox.children:{name}", limits=limits, log=log / "log", scratch=scratch)


def test_confined_child(tmp_path: Path) -> None:
    """Each attempt ends as it must, as far as the platform offers a mechanism; the file is as it was."""
    scratch, outside = tmp_path / "scratch", tmp_path / "outside"
    scratch.mkdir()
    outside.write_text("text")
    outside.chmod(0o644)
    mode = outside.stat().st_mode
    with ForkServer() as server:
        child = started(server, "confined", tmp_path, scratch, Limits(seconds=30.0, memory=512 << 20))
        child.send([os.getpid(), str(outside), __file__])
        active, done = child.receive(20)
        assert child.stop().kind == "ok"
    assert set(done) >= ALLOWED
    escaped = set(done) - ALLOWED
    if "seccomp" not in active or not any(name.startswith("landlock") for name in active):
        pytest.skip(f"this platform offers only {active}, and {sorted(escaped)} succeeded")
    if "read-only mounts" not in active:
        escaped -= {"permissions"}  # Landlock leaves them to others
    elif outside.is_relative_to("/tmp"):  # there it writes to a layer of its own, which nobody else sees
        escaped -= {"write outside", "create outside", "remove", "truncate", "permissions"}
    if landlock.version() < 6:
        escaped -= {"signal to the owner", "signal to the supervisor"}
    assert escaped == set()
    assert outside.read_text() == "text"
    assert outside.stat().st_mode == mode
    assert not outside.with_name(f"{outside.name}.new").exists()
    assert {"no new privileges", "undumpable"} <= set(active)


@pytest.mark.parametrize("mechanism", [*MECHANISMS, None])
def test_one_mechanism_alone(mechanism: Mechanism | None, tmp_path: Path) -> None:
    """Without the others, to find out which one a library cannot bear."""
    with ForkServer() as server:
        child = started(server, "confined_by", tmp_path, tmp_path)
        child.send([] if mechanism is None else [mechanism])
        active = child.receive(20)
        child.stop()
    assert active[-2:] == ["no new privileges", "undumpable"]
    if mechanism is not None and len(active) == 2:
        pytest.skip(f"this platform does not offer {mechanism}")
    assert [mechanism is not None and mechanism in name for name in active[:-2]] == [True] * (len(active) - 2)


def test_a_network_of_its_own(tmp_path: Path) -> None:
    """Whoever started it there may connect to what it listens at; it reaches nobody."""
    with ForkServer() as server:
        found = started(server, "listen_confined", tmp_path, tmp_path).receive(20)
    if not found:
        pytest.skip("this system grants no network namespaces")
    assert found == ["connected", "FileNotFoundError", "lo"]


def initialized(folder: Path, folders: list[str]) -> tuple[list[str], int, list[str]]:
    """Active mechanisms, the driver's error code, and files that could be written."""
    scratch = folder / "scratch"
    scratch.mkdir()
    with ForkServer() as server:
        child = started(server, "initialize_driver", folder, scratch)
        child.send([str(driver_stand_in.build(folder)), folders])
        found: tuple[list[str], int, list[str]] = tuple(child.receive(20))
        child.stop()
    return found


def test_driver_of_a_gpu_can_be_initialized(tmp_path: Path) -> None:
    """It names a thread of its own, asks for the MPS server, and reserves a terabyte of addresses."""
    own = [str(folder).replace(str(os.getpid()), "OWN") for folder in device("cuda").driver_folders()]
    active, error, writable = initialized(tmp_path, own)
    assert error == 0, active
    assert writable == []


def test_driver_fails_without_its_folders(tmp_path: Path) -> None:
    """Error 304, as on a machine with a driver of version 570 or newer: the stand-in is as strict."""
    active, error, _ = initialized(tmp_path, [])
    if "read-only mounts" not in active and not any(name.startswith("landlock") for name in active):
        pytest.skip(f"this platform offers only {active}")
    assert error == 304


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount")
def test_file_systems_below_tmp_stay_visible() -> None:
    """A project on a file system that is mounted below /tmp can be read in there, and not be changed."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        mounted = Path(folder) / "file system"
        mounted.mkdir()
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", mounted], check=False
        ).returncode:
            pytest.skip("mounting is not allowed here")
        try:
            (mounted / "file").write_text("text")
            scratch = Path(folder) / "scratch"
            scratch.mkdir()
            with ForkServer() as server:
                child = started(server, "read_confined", Path(folder), scratch)
                child.send(str(mounted / "file"))
                read, refused = child.receive(20)
                child.stop()
            assert read == "text"
            assert refused in {"PermissionError", "OSError"}
            assert (mounted / "file").read_text() == "text"
        finally:
            subprocess.run(["umount", mounted], check=True)


def test_needs_a_single_thread() -> None:
    """Threads that run already would stay free, so it refuses; the process is left as it was."""

    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    before = dict(os.environ)
    try:
        with pytest.raises(WorkerError, match="several threads"):
            confine(Path("/nonexistent"))
    finally:
        stop.set()
        thread.join()
        assert dict(os.environ) == before


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("families", [seccomp.UNCONNECTED, seccomp.LISTENING])
def test_filter_jumps_stay_inside(machine: str, families: tuple[int, ...]) -> None:
    """Every jump of the filter leads to a line of it, and it ends by allowing."""
    lines = seccomp.filter_lines(machine, families)
    for number, (code, when_true, when_false, _) in enumerate(lines):
        if code in (seccomp._EQUAL, seccomp._AT_LEAST):
            assert number + 1 + max(when_true, when_false) < len(lines)
    assert lines[-1] == (seccomp._RETURN, 0, 0, seccomp._ALLOW)


def test_disks_below_tmp_stay_visible(tmp_path: Path) -> None:
    """The artifacts may lie on a disk of their own below /tmp, which a layer over /tmp would hide."""
    scratch, disk = tmp_path / "scratch", tmp_path / "disk"
    scratch.mkdir()
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"a disk cannot be mounted here: {made.stderr.strip()}")
    try:
        (disk / "outside").write_text("text")
        with ForkServer() as server:
            child = started(server, "confined", tmp_path, scratch, Limits(seconds=30.0, memory=512 << 20))
            child.send([os.getpid(), str(disk / "other"), str(disk / "outside")])
            _, done = child.receive(20)
            assert child.stop().kind == "ok"
        assert "read outside" in done
        assert (disk / "outside").read_text() == "text"
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
