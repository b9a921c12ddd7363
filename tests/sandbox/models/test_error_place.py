"""Tests of the line that a message names for an exception in a user's file."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.sandbox.models.error_place import raised_at

SOURCE = """\
import json


def own(x):
    return missing + x


def within_a_library(x):
    return json.loads(x)


def from_another(x):
    try:
        own(x)
    except NameError as error:
        raise RuntimeError("outer") from error


def names_a_line(x):
    raise ValueError("at 3:5: no")
"""


@pytest.fixture
def module(tmp_path: Path) -> Any:
    """A user's file."""
    path = tmp_path / "users.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("users", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("own", " (line 5: return missing + x)"),
        ("within_a_library", " (line 9: return json.loads(x))"),
        ("from_another", ' (line 16: raise RuntimeError("outer") from error)'),
        ("names_a_line", ""),
    ],
)
def test_the_users_line(module: Any, name: str, expected: str) -> None:
    """The innermost one, also within a library's call; of what was raised last, as the message is."""
    with pytest.raises((NameError, RuntimeError, ValueError)) as raised:
        getattr(module, name)("{")
    found = raised_at(raised.value)
    # The test's own call of the function is in a user's file as well.
    assert found == expected


def test_a_librarys_own() -> None:
    """No line where no file of a user's is among the calls."""
    try:
        np.zeros(2).reshape(3)
    except ValueError as error:
        error.__traceback__ = None
        assert raised_at(error) == ""
