"""A network of this process's own: it and what it starts can talk to each other, and to nobody else."""

import fcntl
import socket
import struct
from typing import Literal

from pipeline.sandbox.confinement import system_calls

Network = Literal["none", "own"]
"""What a confined process has."""
_NEW_NETWORK = 0x40000000
_SET_FLAGS = 0x8914  # SIOCSIFFLAGS
_UP = 1


def enter() -> None:
    """Leave the machine's network; OSError where that is not allowed. Cannot be undone."""
    system_calls.unshare(_NEW_NETWORK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))
