"""The folder of a search. In: its path from the repository. Out: its files with their digests."""

from pathlib import Path

from pipeline.errors import ConfigError
from pipeline.records.record import digest_bytes


def files_of(folder: str, root: Path) -> dict[str, str]:
    """Name -> digest of the files that lie in it, in order; hidden ones and those that begin with _ are left.

    Raises
    ------
    ConfigError
        It is no folder, it holds no file, or one cannot be read.
    """
    path = root / folder
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise ConfigError(f"search.folder: {folder}: {what}, expected a folder of sources")
    files = sorted(each for each in path.iterdir() if each.is_file() and each.name[0] not in "._")
    if not files:
        raise ConfigError(f"search.folder: {folder}: holds no source, expected one file for each variant")
    try:
        return {file.name: digest_bytes(file.read_bytes()) for file in files}
    except OSError as error:
        raise ConfigError(f"search.folder: {error.filename}: cannot be read: {error.strerror}") from None
