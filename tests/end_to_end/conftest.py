"""Fixtures of the end-to-end tests."""

from pathlib import Path

import pytest

from tests.end_to_end.checkout import Checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A private copy of the project."""
    return Checkout(tmp_path / "project")
