"""Files that a user hands in as sources: what is wrong with one before it is read.

In: a path below a folder. Out: one line, or None. Nothing of the file is read, so that a device, a pipe or a
file of gigabytes costs nothing.
"""

from pathlib import Path

SOURCE_BYTES_AT_MOST = 4 << 20
"""Of one source. Python needs about 100 times the size of a file to parse it; sources have kilobytes."""


def unusable(path: Path, root: Path) -> str | None:
    """Why a file cannot be taken as a source of the folder `root`; None if it can, or does not exist."""
    try:
        resolved = path.resolve()
        if not resolved.is_relative_to(root.resolve()):
            return f"a symbolic link out of the folder {root}, expected a file in it"
        if not path.exists() and not path.is_symlink():
            return None
        if not path.is_file():
            return "a symbolic link to nothing" if path.is_symlink() else "no regular file"
        size = path.stat().st_size
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, until Python 3.12
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if size > SOURCE_BYTES_AT_MOST:
        return f"has {size / 1e6:.1f} MB, expected at most {SOURCE_BYTES_AT_MOST / 1e6:.1f} MB of source"
    return None
