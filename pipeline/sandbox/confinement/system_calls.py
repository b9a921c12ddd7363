"""Calls of the Linux kernel that Python's library does not offer, by number, with their errors as OSError."""

import contextlib
import ctypes
import functools
import os
import platform
import sys
from pathlib import Path

# Numbers differ between architectures only for calls that are older than 2019.
ARCHITECTURE = platform.machine()
MOUNT_SETATTR = 442
LANDLOCK_CREATE_RULESET = 444
LANDLOCK_ADD_RULE = 445
LANDLOCK_RESTRICT_SELF = 446

_NEW_USER = 0x10000000
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38


def available() -> bool:
    """Whether this is Linux on a machine whose calls are known here."""
    return sys.platform == "linux" and ARCHITECTURE in ("x86_64", "aarch64")


def call(number: int, *arguments: object) -> int:
    """A system call by number; plain integers are passed as 64 bits."""
    library = _library()
    plain = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _checked(library.syscall(ctypes.c_long(number), *plain))


def prctl(option: int, *arguments: int) -> int:
    """`prctl(2)`."""
    padded = [*arguments, 0, 0, 0, 0][:4]
    return _checked(_library().prctl(option, *(ctypes.c_ulong(value) for value in padded)))


def library_call(name: str, *arguments: object) -> int:
    """A function of the C library that returns -1 and sets errno where it fails."""
    plain = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    return _checked(_library()[name](*plain))


def unshare(flags: int) -> None:
    """Namespaces of its own for this process; OSError where it may have none.

    Root has the right to them, others in a user namespace, which many systems grant to everybody.
    """
    if os.geteuid() == 0:
        with contextlib.suppress(PermissionError):
            library_call("unshare", flags)
            return
    user, group = os.geteuid(), os.getegid()
    reveal()  # the files below belong to root where this process is concealed
    library_call("unshare", _NEW_USER | flags)
    for name, text in (
        ("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1"),
    ):  # fmt: skip
        (Path("/proc/self") / name).write_text(text)


def conceal() -> None:
    """Nobody without the right to trace any process can read or change this one's memory from now on.

    A process that knows expected values calls it. It also leaves no core dump.
    """
    if sys.platform == "linux":
        prctl(_PR_SET_DUMPABLE, 0)


def reveal() -> None:
    """Undo `conceal`, which children inherit."""
    if sys.platform == "linux":
        prctl(_PR_SET_DUMPABLE, 1)


def forgo_privileges() -> None:
    """No program that this process starts gets more rights than it has (`no_new_privs`)."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def threads() -> int:
    """How many threads this process has."""
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    return library


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)
