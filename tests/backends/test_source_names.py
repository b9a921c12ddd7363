"""Names that sources define, from their text."""

from pathlib import Path

import pytest

from pipeline.backends.source_names import defined_names, exported_names, mentions


def source(folder: Path, text: str) -> Path:
    """A file with this text."""
    path = folder / "source"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "from a import b as c\nimport d.e\nx = y = 1\ndef f(): ...\nclass G: ...\n",
            {"c", "d", "x", "y", "f", "G"},
        ),
        ("if True:\n    def f(): ...\nelse:\n    f = None\n", {"f"}),
        ("from a import *\n", None),
        ("def f(:\n", None),
    ],
)
def test_python(tmp_path: Path, text: str, names: set[str] | None) -> None:
    """Functions, classes, imports, assignments; None if the text does not tell."""
    assert defined_names(source(tmp_path, text)) == names


def test_c(tmp_path: Path) -> None:
    """A name in a comment is none."""
    path = source(tmp_path, '// scale\nextern "C" int double_it(const float* x) { return 0; }\n')
    assert exported_names(path) == {"double_it"}
    assert mentions(path, "double_it")
    assert not mentions(path, "scale")
