"""The recorded spaces that tests read, where they are."""

from pathlib import Path

import pytest

from tests.paths import ROOT

FOLDER = ROOT.parent / "shared" / "recorded"


def recorded(name: str) -> Path:
    """A file of the folder `recorded`; the test is skipped where it is absent."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"{path} is not here: see docs/guide/spaces.md")
    return path
