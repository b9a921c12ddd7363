"""A patch applies in exactly one place, or it is an error."""

from pathlib import Path

import pytest

from tests.adversarial.patches import PatchError, patched

BASE = """\"\"\"Right.\"\"\"

import torch

a = 1
b = 2
b = 2
"""


def candidates(folder: Path, text: str) -> dict[str, str]:
    """Of patches against `right`."""
    (folder / "solutions").mkdir()
    (folder / "solutions" / "right.py").write_text(BASE)
    (folder / "right.diff").write_text(text)
    return patched(folder / "right.diff")


def test_each_has_its_docstring_and_its_changes(tmp_path: Path) -> None:
    """Several hunks, an insertion with context, a candidate without docstring."""
    text = (
        "=== one\nWrong.\n@@\n-a = 1\n+a = 3\n@@\n+import os\n import torch\n\n=== two\n@@\n a = 1\n-b = 2\n"
    )
    assert candidates(tmp_path, text) == {
        "one": BASE.replace("Right", "Wrong")
        .replace("a = 1", "a = 3")
        .replace("import t", "import os\nimport t"),
        "two": "import torch\n\na = 1\nb = 2\n",
    }


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("=== one\n@@\n-c = 1\n+c = 3\n", id="not there"),
        pytest.param("=== one\n@@\n-b = 2\n+b = 3\n", id="twice"),
        pytest.param("=== one\n@@\n-a = \n+b = 3\n", id="part of a line"),
        pytest.param("=== one\n@@\n+b = 3\n", id="no place"),
        pytest.param("=== one\n@@\na = 1\n", id="no sign"),
        pytest.param("=== one\nWrong.\n=== one\nWrong.\n", id="repeated name"),
    ],
)
def test_what_does_not_apply_is_an_error(tmp_path: Path, text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(PatchError):
        candidates(tmp_path, text)
