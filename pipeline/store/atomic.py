"""Writes that are whole or absent, whatever kills the process.

A folder with the set-group-ID bit is shared by its group (`chmod g+rws`): what is made in it takes its
permissions, whatever the umask of the process that creates it. Elsewhere the owner writes and all may read.
"""

import contextlib
import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipeline.records.errors import REMEDIES, StoreError, explained
from pipeline.store.temporary import prefix

_NUMBERS = itertools.count()


def write_atomic(path: Path, content: bytes | memoryview) -> None:
    """Write a file through a temporary neighbour.

    Raises
    ------
    StoreError
        No space, no permission: the target is untouched.
    """
    try:
        make_folder(path.parent)
        descriptor, name = tempfile.mkstemp(prefix=prefix(path.name), dir=path.parent)
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        # mkstemp makes files private; results are for everyone who may read the folder.
        Path(name).chmod(file_mode(path.parent))
        Path(name).replace(path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> StoreError:
    """The error for a path that cannot be written."""
    return StoreError(f"{path}: cannot be written: {explained(error)}")


class FolderWriter:
    """Writes many small files to one folder, each whole or absent; asks for the folder's permissions once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mode: int | None = None

    def put(self, name: str, content: bytes) -> None:
        """Write a file unless an equal one is there, which is not touched.

        Raises
        ------
        StoreError
            No space, no permission: the target is untouched.
        """
        path = os.path.join(self._folder, name)  # noqa: PTH118  (pathlib costs more than the writing)
        if not _holds(path, content):
            try:
                self._write(path, name, content)
            except OSError as error:
                raise unwritable(Path(path), error) from error

    def _write(self, path: str, name: str, content: bytes) -> None:
        if self._mode is None:
            make_folder(self._folder)
            self._mode = file_mode(self._folder)
        temporary, descriptor = self._open(name)
        try:
            try:
                os.fchmod(descriptor, self._mode)
                left = memoryview(content)
                while left:
                    left = left[os.write(descriptor, left) :]
            finally:
                os.close(descriptor)
            os.replace(temporary, path)  # noqa: PTH105
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108
            raise

    def _open(self, name: str) -> tuple[str, int]:
        """A neighbour that does not exist yet: a dead process with our id may have left one."""
        while True:
            temporary = os.path.join(self._folder, f"{prefix(name)}{next(_NUMBERS)}")  # noqa: PTH118
            with contextlib.suppress(FileExistsError):
                return temporary, os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _holds(path: str, content: bytes) -> bool:
    try:
        with open(path, "rb", buffering=0) as stream:  # noqa: PTH123
            return stream.read() == content
    except OSError:
        return False


@contextlib.contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes `target` when the block ends without an exception.

    Where another process was first, its result stays and ours is dropped: entries are content-addressed,
    so both are equal in what counts.
    """
    try:
        make_folder(target.parent)
        scratch = Path(tempfile.mkdtemp(prefix=prefix(target.name), dir=target.parent))
    except OSError as error:
        raise unwritable(target, error) from error
    try:
        yield scratch
        _open_up(scratch, target.parent)
        try:
            scratch.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        raise unwritable(target, error) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which need not exist yet."""
    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    return os.access(there, os.W_OK | os.X_OK)


def make_folder(path: Path) -> None:
    """Make a folder with the folders above it; in a shared one, they are shared, too.

    Raises
    ------
    OSError
        No permission, no space, or a file in the way.
    """
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    if _is_shared(path.parent):
        path.chmod(_folder_mode(path.parent))


def _open_up(folder: Path, parent: Path) -> None:
    """Give a folder that was made privately the permissions that are usual in its place."""
    folder.chmod(_folder_mode(parent))
    if not _is_shared(parent):
        return
    for path in folder.rglob("*"):
        path.chmod(_folder_mode(parent) if path.is_dir() else file_mode(parent))


def _is_shared(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_ISGID)


def _folder_mode(parent: Path) -> int:
    return stat.S_IMODE(parent.stat().st_mode) if _is_shared(parent) else 0o755


def file_mode(parent: Path) -> int:
    """The permissions of a file that is made in a folder."""
    return parent.stat().st_mode & 0o666 if _is_shared(parent) else 0o644
