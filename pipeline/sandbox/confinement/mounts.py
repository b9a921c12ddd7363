"""A view of the file system of its own for this process, read-only but for a few folders.

Landlock denies writing, but neither changes of permissions nor of times; a read-only mount denies both. Needs
the right to mount, which root has, or a user namespace, which many systems grant to everybody.
"""

import ctypes
import os
import re
from collections.abc import Sequence
from pathlib import Path

from pipeline.sandbox.confinement import system_calls

_NEW_MOUNTS = 0x00020000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 1 << 18
_NO_SETUID, _NO_DEVICES = 0x2, 0x4
_DETACH = 0x2
_READ_ONLY = 0x1  # attribute
_AT_CURRENT_FOLDER, _AT_RECURSIVE = -100, 0x8000
_TEMPORARY = Path("/tmp")
_SHARED_MEMORY = Path("/dev/shm")
_SHARED_MEMORY_OPTIONS = b"size=1g,mode=1777"


class _Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace")]


def read_only(writable: Sequence[Path]) -> tuple[Path, ...] | None:
    """Mount everything read-only but these folders, an empty /dev/shm and a layer over /tmp.

    Returns what is writable besides the folders; None where mounting is not allowed. Where it fails half-way
    what was done stays: it takes nothing from the caller but the right to write.
    """
    folders = [path.resolve() for path in writable if path.is_dir()]
    added: list[Path] = []
    where = Path.cwd()
    try:
        system_calls.unshare(_NEW_MOUNTS)
        _mount(None, Path("/"), _RECURSIVE | _PRIVATE)
        if _own_temporary_folder(folders):
            added.append(_TEMPORARY)
        else:
            for folder in folders:
                _mount(folder, folder, _BIND)
        if _SHARED_MEMORY.is_dir():
            _mount_memory(_SHARED_MEMORY)
            added.append(_SHARED_MEMORY)
        _set_attributes(Path("/"), _AT_RECURSIVE, _Attributes(_READ_ONLY, 0, 0, 0))
        for folder in (*folders, *added):
            _set_attributes(folder, 0, _Attributes(0, _READ_ONLY, 0, 0))
    except OSError:
        return None
    finally:
        os.chdir(where)  # the same path, now through the new mounts
    return tuple(added)


def _own_temporary_folder(folders: Sequence[Path]) -> bool:
    """Put a layer over /tmp that takes all writing, and these folders back on it; False: not allowed here.

    Many a kernel's host code compiles into a fixed place below /tmp. What it finds there stays visible, also
    what is on disks that are mounted below: a layer does not show them by itself.
    """
    if not _TEMPORARY.is_dir() or _TEMPORARY.is_symlink() or not folders:
        return False
    # The layer shows what lies in /tmp itself; other file systems that are mounted there are put back.
    back = [(path, _BIND | _RECURSIVE) for path in _mounted_below(_TEMPORARY)]
    back += [(folder, _BIND) for folder in folders]
    held = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path, _ in back]
    base = folders[0]
    try:
        _mount_memory(base)
    except OSError:
        return False
    try:
        for name in ("upper", "work"):
            (base / name).mkdir()
        (base / "upper").chmod(0o1777)
        layers = f"lowerdir={_TEMPORARY},upperdir={base}/upper,workdir={base}/work".encode()
        target = os.fsencode(_TEMPORARY)
        system_calls.library_call("mount", b"overlay", target, b"overlay", _NO_SETUID | _NO_DEVICES, layers)
        for (path, how), descriptor in zip(back, held, strict=True):
            _mount(Path(f"/proc/self/fd/{descriptor}"), path, how)
    except OSError:
        system_calls.library_call("umount2", os.fsencode(base), _DETACH)
        return False
    finally:
        for descriptor in held:
            os.close(descriptor)
    return True


def _mounted_below(folder: Path) -> list[Path]:
    """Where other file systems are mounted below a folder, without what is mounted below these."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    # Spaces and the like are written as octal numbers.
    points = sorted({Path(re.sub(r"\\(\d{3})", _character, line.split()[4])) for line in lines})
    found: list[Path] = []
    for point in points:
        if folder in point.parents and not any(above in point.parents for above in found):
            found.append(point)
    return found


def _character(octal: re.Match[str]) -> str:
    return chr(int(octal[1], 8))


def _mount(source: Path | None, target: Path, flags: int) -> None:
    name = None if source is None else os.fsencode(source)
    system_calls.library_call("mount", name, os.fsencode(target), None, flags, None)


def _mount_memory(target: Path) -> None:
    arguments = (b"tmpfs", os.fsencode(target), b"tmpfs", _NO_SETUID | _NO_DEVICES, _SHARED_MEMORY_OPTIONS)
    system_calls.library_call("mount", *arguments)


def _set_attributes(target: Path, flags: int, attributes: _Attributes) -> None:
    system_calls.call(
        system_calls.MOUNT_SETATTR,
        _AT_CURRENT_FOLDER,
        os.fsencode(target),
        flags,
        ctypes.byref(attributes),
        ctypes.sizeof(attributes),
    )
