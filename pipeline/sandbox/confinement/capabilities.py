"""Give up root's powers for good: a container's candidates often run as root."""

import ctypes
import os

from pipeline.sandbox.confinement import system_calls

_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_CAPSET = {"x86_64": 126, "aarch64": 91}
_VERSION_3 = 0x20080522
_READ_ANYTHING = 2  # CAP_DAC_READ_SEARCH: a folder that another user shares with root stays readable


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("process", ctypes.c_int)]


class _Sets(ctypes.Structure):
    _fields_ = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


def drop() -> str | None:
    """Keep no capability but to read any file; None where this process has none to drop.

    Root without capabilities can neither trace its owner, nor signal or change what others own, nor raise its
    limits. It still owns root's files: those are for Landlock and the read-only mounts.
    """
    if os.geteuid() != 0:
        return None
    try:
        for capability in _known():
            if capability != _READ_ANYTHING:
                system_calls.prctl(_PR_CAPBSET_DROP, capability)
    except PermissionError:
        return None  # root of a container that was given none
    kept = 1 << _READ_ANYTHING
    sets = (_Sets * 2)(_Sets(kept, kept, 0), _Sets(0, 0, 0))
    header = _Header(_VERSION_3, 0)
    try:
        system_calls.call(_CAPSET[system_calls.ARCHITECTURE], ctypes.byref(header), ctypes.byref(sets))
    except PermissionError:  # it has not even that one
        system_calls.call(
            _CAPSET[system_calls.ARCHITECTURE], ctypes.byref(header), ctypes.byref((_Sets * 2)())
        )
    return "no capabilities"


def _known() -> range:
    """All capabilities of this kernel: asking for the next one fails."""
    for capability in range(64):
        try:
            system_calls.prctl(_PR_CAPBSET_READ, capability)
        except OSError:
            return range(capability)
    return range(64)
