"""Functions that tests run in forked children: each ends in its own way."""

import ctypes
import mmap
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pipeline.sandbox.confinement import own_network
from pipeline.sandbox.confinement.confine import confine
from pipeline.sandbox.processes.channel import Channel
from pipeline.sandbox.processes.fork_server import shared_path
from pipeline.sandbox.processes.worker_client import NO_DRIVER


def echo(channel: Channel) -> None:
    """Answers with what it got, until the channel closes."""
    while True:
        try:
            channel.send(channel.receive())
        except EOFError:
            return


def reserve(channel: Channel) -> None:
    """Reserves a terabyte of addresses as a driver does, then takes memory without end."""
    reserved = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)
    channel.send(len(reserved))
    allocate(channel)


def use_torch(channel: Channel) -> None:
    """Runs a parallel region: would hang if the thread pool had been broken by the fork."""
    import torch

    torch.set_num_threads(2)
    channel.send(float((torch.ones(256, 256) @ torch.ones(256, 256)).sum()))


def import_colorsys() -> None:
    """What a branch of the warm worker prepares: a module that nothing else imports."""
    import colorsys  # noqa: F401


def tell_surroundings(channel: Channel) -> None:
    """Says what was imported before it began, where it runs, and some of its variables."""
    names = ("KERNELMILL_TEST", "TORCH_TEST", "TRITON_INTERPRET", "SOME_API_KEY", *NO_DRIVER)
    seen = {name: os.environ[name] for name in names if name in os.environ}
    imported = sorted({"colorsys", "torch", "triton"} & set(sys.modules))
    channel.send({"imported": imported, "folder": str(Path.cwd()), "variables": seen})


def hang(channel: Channel) -> None:
    """Never ends."""
    while True:
        time.sleep(1)


def crash(channel: Channel) -> None:
    """Reads address 0."""
    ctypes.string_at(0)


def allocate(channel: Channel) -> None:
    """Takes and touches memory without end."""
    blocks = []
    while True:
        block = mmap.mmap(-1, 32 << 20)
        block[:: mmap.PAGESIZE] = b"x" * len(block[:: mmap.PAGESIZE])
        blocks.append(block)


def chatter(channel: Channel) -> None:
    """Prints without end."""
    while True:
        os.write(1, b"x" * 65536)


def fail(channel: Channel) -> None:
    """Raises."""
    raise ValueError("a reason")


def leave(channel: Channel) -> None:
    """Ends without an answer."""
    os._exit(0)


def garbage(channel: Channel) -> None:
    """Answers with something else than what is expected."""
    channel.send({"unexpected": 1})
    time.sleep(60)


def orphan(channel: Channel) -> None:
    """Leaves a process behind in a session of its own."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        time.sleep(600)
    channel.send(pid)


def where(channel: Channel) -> None:
    """Tells its folder and one environment variable."""
    channel.send([str(Path.cwd()), os.environ.get("KERNELMILL_TEST")])


def preloaded(channel: Channel) -> None:
    """Tells whether a module was there from the start, and one environment variable."""
    channel.send(["tabnanny" in sys.modules, os.environ.get("KERNELMILL_TEST")])


def descriptors(channel: Channel) -> None:
    """Tells where its descriptors lead."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(entry.readlink()))
        except OSError:
            continue
    channel.send(found)


def multiply(channel: Channel) -> None:
    """Starts processes without end."""
    while True:
        if os.fork() == 0:
            time.sleep(600)


def shared(channel: Channel) -> None:
    """Tells what lies in the first shared descriptor."""
    channel.send(Path(shared_path(0)).read_text())


def confined(channel: Channel) -> None:
    """Confines itself, then tries what it must not do; answers with the mechanisms and what succeeded."""
    owner, writable, readable = channel.receive()
    active = confine(Path.cwd())
    done = [name for name, attempt in attempts(owner, writable, readable).items() if succeeds(attempt)]
    channel.send([list(active), done])


def initialize_driver(channel: Channel) -> None:
    """Confined, it initializes the driver of a GPU; answers with mechanisms, error code, and what it could
    write elsewhere."""
    library, folders = channel.receive()
    active = confine(Path.cwd(), [Path(each.replace("OWN", str(os.getpid()))) for each in folders])
    error = ctypes.CDLL(library).cuInit(0)
    files = ("/proc/self/oom_score_adj", "/proc/sys/kernel/core_pattern", "/proc/self/comm")
    writable = [name for name in files if succeeds(lambda name=name: Path(name).write_text("0"))]
    channel.send([list(active), error, writable])


def confined_by(channel: Channel) -> None:
    """Answers with what is active of the mechanisms that it is to use."""
    mechanisms = channel.receive()
    channel.send(list(confine(Path.cwd(), mechanisms=mechanisms)))


def listen_confined(channel: Channel) -> None:
    """Answers with what happens to sockets in a network of its own, before and after it is confined."""
    try:
        own_network.enter()
    except OSError:
        channel.send([])
        return

    def listening() -> socket.socket:
        return socket.create_server(("127.0.0.1", 0))

    def connected(server: socket.socket) -> str:
        try:
            socket.create_connection(server.getsockname(), timeout=5).close()
        except OSError as error:
            return type(error).__name__
        return "connected"

    devices = [name for _, name in socket.if_nameindex()]
    before = connected(listening())
    confine(Path.cwd(), network="own")
    channel.send([before, connected(listening()), *devices])


def read_confined(channel: Channel) -> None:
    """Confined, it reads a file and tries to write it."""
    path = Path(channel.receive(str))
    confine(Path.cwd())
    try:
        path.write_text("changed")
    except OSError as error:
        refused = type(error).__name__
    else:
        refused = "nothing"
    channel.send([path.read_text() if path.exists() else "absent", refused])
    channel.receive()


def attempts(owner: int, writable: str, readable: str) -> dict[str, Callable[[], object]]:
    """What a hostile candidate may try, by name."""
    library = ctypes.CDLL(None, use_errno=True)

    def connect() -> None:
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind("socket")
            server.listen()
            client.connect("socket")

    def trace() -> None:
        if library.ptrace(16, owner, None, None) != 0:  # PTRACE_ATTACH
            raise OSError

    return {
        "write outside": lambda: Path(writable).write_text("changed"),
        "create outside": lambda: Path(f"{writable}.new").write_text("new"),
        "remove": lambda: Path(writable).unlink(),
        "truncate": lambda: os.truncate(writable, 0),
        "permissions": lambda: Path(writable).chmod(0o777),
        "network": lambda: socket.socket(socket.AF_INET),
        "network 6": lambda: socket.socket(socket.AF_INET6),
        "netlink": lambda: socket.socket(socket.AF_NETLINK),
        "connect": connect,
        "trace the owner": trace,
        "memory of the owner": lambda: Path(f"/proc/{owner}/mem").open("rb"),
        "signal to the owner": lambda: os.kill(owner, 0),
        "signal to the supervisor": lambda: os.kill(os.getppid(), 0),
        "limits of the owner": lambda: resource.prlimit(owner, resource.RLIMIT_NOFILE, (64, 64)),
        "scratch": lambda: Path("file").write_text("text"),
        "scratch folder": lambda: Path("folder").mkdir(),
        "temporary file": tempfile.TemporaryFile,
        "read outside": lambda: Path(readable).read_text(),
        "run a program": lambda: subprocess.run(["true"], check=True),
        "compile": build,
        "nothing": lambda: Path(os.devnull).write_text("text"),
        "pair of sockets": socket.socketpair,
        "own limits": lambda: resource.getrlimit(resource.RLIMIT_NOFILE),
    }


def build() -> None:
    """Compiles and loads a shared object in the working directory."""
    Path("three.cpp").write_text('#include <vector>\nextern "C" int three() { return 3; }')
    subprocess.run(["c++", "-shared", "-fPIC", "three.cpp", "-o", "three.so"], check=True)
    if ctypes.CDLL("./three.so").three() != 3:
        raise OSError


def succeeds(attempt: Callable[[], object]) -> bool:
    """Whether it ends without an exception."""
    try:
        attempt()
    except Exception:
        return False
    return True


def slow_echo(channel):
    """Answer after as many seconds as the value says."""
    while True:
        value = channel.receive()
        time.sleep(value)
        channel.send(value)
