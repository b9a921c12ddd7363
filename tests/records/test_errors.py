"""Errors: one line each, whatever they quote."""

import pytest

from pipeline.records.errors import FormatError, hint, one_line

LISTED = ", ".join(f"n{each}" for each in range(24))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  as it is: µs", "  as it is: µs"),
        ("two\n  lines\n", "two lines"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("half \ud800", r"half \ud800"),
    ],
)
def test_one_line(text: str, line: str) -> None:
    """Ends of lines become spaces; what steers a terminal or is no character is written out."""
    assert one_line(text) == line
    assert str(FormatError(text)) == line
    line.encode()


@pytest.mark.parametrize(
    ("name", "count", "folder", "text"),
    [
        ("n1x", 30, "conf/n", "; did you mean 'n1'?"),
        ("n1x", 2, "conf/n", "; did you mean 'n1'? (known: n0, n1)"),
        ("z", 2, "conf/n", " (known: n0, n1)"),
        ("z", 0, None, " (known: none)"),
        ("z", 26, "conf/n", f" (known: {LISTED}, … and 2 more in conf/n)"),
        ("z", 26, None, f" (known: {LISTED}, n24, n25)"),
    ],
)
def test_hint(name: str, count: int, folder: str | None, text: str) -> None:
    """All of them, unless a folder has many: then a similar name alone, or where they are."""
    assert hint(name, [f"n{each}" for each in range(count)], folder=folder) == text
