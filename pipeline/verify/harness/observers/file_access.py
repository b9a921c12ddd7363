"""Watches which files the candidate's own code writes, renames and deletes.

In: audit events of Python. Out: one line for each file: `wrote /tmp/x/last.txt`. Packages and compilers keep
caches of their own, which are no concern: what counts is code of the candidate's file, also if it reaches the
file system through the standard library or PyTorch. Sources and products of a compiler may be written.
"""

import functools
import os
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_DOES = {
    "os.remove": "deleted",
    "os.rmdir": "deleted",
    "shutil.rmtree": "deleted",
    "os.rename": "renamed",
    "os.truncate": "truncated",
    "os.link": "linked",
    "os.symlink": "linked",
    "shutil.move": "renamed",
}
_RELATIVE = ("os.remove", "os.rmdir", "os.mkdir")
_BUILDING = frozenset(
    {
        ".c",
        ".cc",
        ".cpp",
        ".cu",
        ".cuh",
        ".h",
        ".hpp",
        ".o",
        ".so",
        ".ptx",
        ".cubin",
        ".ninja",
        ".lock",
        ".py",
    }
)
_DEVICES = ("/dev/", "/proc/self/")
_LIBRARIES = (sysconfig.get_path("stdlib"), str(Path(torch.__file__).parent), "<")
_PROBE = "_get_default_tempdir"  # writes and deletes a file in order to see where it can
_BUILDERS = ("cpp_extension.py", "subprocess.py")


class FileAccess:
    """Files that one candidate touched."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._found: dict[str, None] = {}
        self._own: set[str] = set()

    def take(self) -> tuple[str, ...]:
        """Since the last call of this."""
        found, self._found = tuple(self._found), {}
        return found

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Look at one event."""
        if event == "open" and arguments[2] & _WRITING:
            done = "wrote"
        elif event in _DOES or event == "os.mkdir":
            done = _DOES.get(event, "")
        else:
            return
        path = arguments[0]
        # A descriptor was opened before; what is relative to one is a part of a tree that is deleted.
        relative = event in _RELATIVE and arguments[-1] != -1
        if relative or not isinstance(path, str | bytes | os.PathLike):
            return
        text = str(Path.cwd() / os.fsdecode(path))
        built = Path(text).suffix in _BUILDING or text.startswith(_DEVICES)
        if built or not self._is_candidates(sys._getframe(1)):
            return
        if not done:
            self._own.add(text)
        elif done != "deleted" or text not in self._own:
            self._found[f"{done} {_shown(text)}"] = None

    def watch_saving(self, is_watched: Callable[[], bool]) -> None:
        """Replace `torch.save`, which writes without asking Python."""
        save: Any = torch.save

        @functools.wraps(save)
        def saved(value: Any, file: Any, *arguments: Any, **keywords: Any) -> None:
            save(value, file, *arguments, **keywords)
            if isinstance(file, str | os.PathLike) and is_watched():
                self._found[f"wrote {_shown(str(Path.cwd() / file))}"] = None

        for module in (torch, torch.serialization):
            setattr(module, save.__name__, saved)

    def _is_candidates(self, frame: FrameType | None) -> bool:
        """Whether it is the candidate's file that asks, be it through the standard library."""
        while frame is not None:
            name = frame.f_code.co_filename
            if name.endswith(_BUILDERS) or frame.f_code.co_name == _PROBE:
                return False
            if name == self._source:
                return True
            if not name.startswith(_LIBRARIES) and name != __file__ and not name.endswith("observer.py"):
                return False
            frame = frame.f_back
        return False


def _shown(path: str) -> str:
    """In its working directory, or as it is."""
    folder = f"{Path.cwd()}/"
    return f"./{path.removeprefix(folder)}" if path.startswith(folder) else path
