"""The recorded spaces that tests read, where they are."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "recorded"


def recorded(name: str) -> Path:
    """A file of the folder `recorded`; the test is skipped where it is absent."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"{path} is not here: see docs/spaces.md")
    return path
