"""Landlock: this process and all that it starts may write to a few places only, without any privilege.

Source: the kernel's `Documentation/userspace-api/landlock.rst`, versions 1 to 7 of its interface.
"""

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from pipeline.sandbox.confinement import system_calls
from pipeline.sandbox.confinement.own_network import Network

_VERSION = 1  # flag of landlock_create_ruleset: tell the version instead
_RULE_PATH_BENEATH = 1

_WRITE_FILE = 1 << 1
_WRITE_DIRECTORY = sum(1 << bit for bit in range(4, 13))  # remove and make entries of every kind
_REFER = 1 << 13  # version 2: link and rename between directories
_TRUNCATE = 1 << 14  # version 3
_BIND, _CONNECT = 0b01, 0b10  # version 4: of TCP
_SCOPES = 0b11  # version 6: abstract Unix sockets, signals


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """Version of the kernel's interface; 0 where there is none or it is switched off."""
    try:
        return system_calls.call(system_calls.LANDLOCK_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def restrict(writable: Sequence[Path], network: Network = "none") -> str | None:
    """Deny writing outside of these files and folders, TCP, and signals to others; reading stays as it was.

    Returns what is active (`landlock 7`), None where the kernel has no Landlock. `no_new_privs` must be set.
    """
    known = version()
    if known < 1:
        return None
    files = _WRITE_FILE | (_REFER if known >= 2 else 0) | (_TRUNCATE if known >= 3 else 0)
    tcp = _CONNECT if network == "own" else _CONNECT | _BIND
    ruleset = _Ruleset(files | _WRITE_DIRECTORY, tcp if known >= 4 else 0, _SCOPES if known >= 6 else 0)
    size = 8 if known < 4 else 16 if known < 6 else 24  # what that version's kernel expects
    descriptor = system_calls.call(system_calls.LANDLOCK_CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    try:
        for path in writable:
            _allow(descriptor, path, files & ~_REFER, ruleset.files)
        system_calls.call(system_calls.LANDLOCK_RESTRICT_SELF, descriptor, 0)
    finally:
        os.close(descriptor)
    return f"landlock {known}"


def _allow(ruleset: int, path: Path, to_file: int, to_folder: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(to_folder if path.is_dir() else to_file, parent)
        system_calls.call(system_calls.LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(parent)
