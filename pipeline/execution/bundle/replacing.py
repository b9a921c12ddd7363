"""Make room for a folder that is written anew: the old one is kept aside where it holds a result."""

import shutil
from pathlib import Path

from pipeline.records.errors import StoreError


def set_aside(folder: Path, kept: Path | None) -> None:
    """Move a folder away to `kept`; without that it is thrown away: it held nothing whole.

    Raises
    ------
    StoreError
        No space, no permission.
    """
    if not folder.exists():
        return
    try:
        if kept is None or kept.exists():  # an interrupted attempt has it already
            shutil.rmtree(folder)
        else:
            kept.parent.mkdir(parents=True, exist_ok=True)
            folder.rename(kept)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be replaced: {error.strerror or error}") from error
