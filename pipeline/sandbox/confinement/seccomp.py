"""A seccomp filter: system calls that a candidate has no use for fail with EPERM; nobody answers a `connect`.

It denies every network but socket pairs, looking into or changing other processes, and what would take the
machine or the sandbox apart. Sources: `seccomp(2)`, `Documentation/userspace-api/seccomp_filter.rst` of the
kernel, and the tables of system calls of both architectures.
"""

import ctypes
import errno
import socket
from collections.abc import Sequence

from pipeline.sandbox.confinement import system_calls

_SET_MODE_FILTER = 1
_ALL_THREADS = 1
_NO_MITIGATION = 4  # older kernels would slow the candidate down by switching speculation off
_ALLOW = 0x7FFF0000
_DENY = 0x00050000 | errno.EPERM
# As if nothing listened there: a driver of NVIDIA that asks for its MPS server accepts no other refusal.
_NOBODY = 0x00050000 | errno.ENOENT
UNCONNECTED = (socket.AF_UNIX,)
"""Of sockets for socket pairs."""
LISTENING = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
"""The same, and of those that others connect to, in a network of the process's own."""
_X32 = 0x40000000  # the other way to make calls on x86_64

# struct seccomp_data: number, architecture, instruction pointer, then arguments of 64 bits.
_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SOCKET = {"x86_64": 41, "aarch64": 198}
_PRLIMIT = {"x86_64": 302, "aarch64": 261}
_CONNECT = {"x86_64": 42, "aarch64": 203}

# name: (x86_64, aarch64); None where the architecture lacks it
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_by_handle_at": (304, 265),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
}


class _Instruction(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint16),
        ("when_true", ctypes.c_uint8),
        ("when_false", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    ]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("filter", ctypes.POINTER(_Instruction))]


def restrict(families: Sequence[int] = UNCONNECTED) -> str | None:
    """Install the filter for all threads and all that they start; None where the kernel has no seccomp.

    `families`: of sockets that can be made. `no_new_privs` must be set.
    """
    lines = filter_lines(system_calls.ARCHITECTURE, families)
    instructions = (_Instruction * len(lines))(*(_Instruction(*line) for line in lines))
    program = _Program(len(lines), instructions)
    number = _SECCOMP[system_calls.ARCHITECTURE]
    try:
        system_calls.call(number, _SET_MODE_FILTER, _ALL_THREADS | _NO_MITIGATION, ctypes.byref(program))
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EINVAL):
            return None
        raise
    return "seccomp"


def filter_lines(machine: str, families: Sequence[int] = UNCONNECTED) -> list[tuple[int, int, int, int]]:
    """The program: a jump that does not match goes on to the next line."""
    column = 0 if machine == "x86_64" else 1
    denied = sorted(numbers[column] for numbers in _DENIED.values() if numbers[column] is not None)  # type: ignore[type-var]
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _AUDIT[machine]),
        (_RETURN, 0, 0, _DENY),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        lines += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _DENY)]
    for number in denied:
        lines += [(_EQUAL, 0, 1, number or 0), (_RETURN, 0, 0, _DENY)]
    lines += [(_EQUAL, 0, 1, _CONNECT[machine]), (_RETURN, 0, 0, _NOBODY)]
    lines += _unless_argument(_SOCKET[machine], families)
    lines += _unless_argument(_PRLIMIT[machine], (0,))  # limits of this process only
    return [*lines, (_RETURN, 0, 0, _ALLOW)]


def _unless_argument(number: int, allowed: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """Deny a call unless its first argument has one of these values."""
    return [
        (_EQUAL, 0, 3 + len(allowed), number),
        (_LOAD, 0, 0, _ARGUMENT),
        *((_EQUAL, left, 0, value) for left, value in zip(range(len(allowed), 0, -1), allowed, strict=True)),
        (_RETURN, 0, 0, _DENY),
        (_LOAD, 0, 0, _NUMBER),
    ]
