"""Many small files in one folder: contents in, files that are whole or absent out.

As `pipeline.store.atomic`, with what the files have in common asked once: the folder, its permissions.
"""

import contextlib
import itertools
import os
from pathlib import Path

from pipeline.store.atomic import file_mode, make_folder, unwritable
from pipeline.store.temporary import prefix

_NUMBERS = itertools.count()


class Files:
    """Writes files to one folder."""

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
        """A neighbour that nobody has: one of a dead process with our number may lie there."""
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
