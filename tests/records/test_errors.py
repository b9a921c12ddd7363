"""Errors: one line each, whatever they quote."""

import pytest

from pipeline.records.errors import FormatError, one_line


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
