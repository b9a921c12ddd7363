"""The folder of a search. In: its path from the repository. Out: its files with their digests."""

import stat
from collections.abc import Iterator
from pathlib import Path

from pipeline.records.errors import ConfigError
from pipeline.records.record import digest_bytes


def files_of(folder: str, root: Path) -> dict[str, str]:
    """Name -> digest of the files that lie in it, in order; hidden ones and those that begin with _ are left.

    Raises
    ------
    ConfigError
        It is no folder, it holds no file, one cannot be read, or is a link that leads out of the folder and
        of the repository: what it leads to would be kept, logged and exported as if it were a source.
    """
    path = root / folder
    try:
        if not path.is_dir():
            what = "is a file" if path.exists() else "does not exist"
            raise ConfigError(f"search.folder: {folder}: {what}, expected a folder of sources")
        files = sorted(_plain_files(path, (path.resolve(), root.resolve())))
        if not files:
            raise ConfigError(f"search.folder: {folder}: holds no source, expected one file for each variant")
        return {file.name: digest_bytes(file.read_bytes()) for file in files}
    except OSError as error:
        raise ConfigError(
            f"search.folder: {error.filename or folder}: cannot be read: {error.strerror}"
        ) from None


def _plain_files(folder: Path, homes: tuple[Path, ...]) -> Iterator[Path]:
    """Files that hold something of their own; folders, devices and the like are passed over."""
    for file in folder.iterdir():
        if file.name[0] in "._":
            continue
        if file.is_symlink():
            _check_link(file, homes)
        if stat.S_ISREG(file.stat().st_mode):
            yield file


def _check_link(link: Path, homes: tuple[Path, ...]) -> None:
    found = link.resolve()
    if not found.exists():
        raise ConfigError(f"search.folder: {link}: a link to {found}, which does not exist: remove the link")
    if not any(found.is_relative_to(home) for home in homes):
        raise ConfigError(
            f"search.folder: {link}: a link to {found}, outside of the repository: put a copy in its place"
        )
