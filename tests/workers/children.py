"""Functions that tests run in forked children: each ends in its own way."""

import ctypes
import mmap
import os
import sys
import time
from pathlib import Path

from pipeline.workers.channel import Channel


def echo(channel: Channel) -> None:
    """Answers with what it got, until the channel closes."""
    while True:
        try:
            channel.send(channel.receive())
        except EOFError:
            return


def use_torch(channel: Channel) -> None:
    """Runs a parallel region: would hang if the thread pool had been broken by the fork."""
    import torch

    channel.send(float((torch.ones(256, 256) @ torch.ones(256, 256)).sum()))


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
