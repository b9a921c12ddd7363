"""The data of the page's charts."""

import pyarrow as pa

from pipeline.report.page.page_data import numbered


def test_numbered() -> None:
    """Equal values have equal numbers, in the order in which they occur; an absent value is one more."""
    table = pa.table({"a": ["y", "x", "y", "x", None, "y"], "b": [2, 1, 2, 2, 1, 2], "c": range(6)})
    numbers, first = numbered(table, ["a", "b"])
    assert numbers == [0, 1, 0, 2, 3, 0]
    assert first.column("c").to_pylist() == [0, 1, 3, 4]


def test_numbered_in_parts() -> None:
    """A table in several pieces is one table, and one without rows has no numbers."""
    parts = pa.concat_tables([pa.table({"a": ["x", "y"]}), pa.table({"a": ["y", "z"]})])
    numbers, first = numbered(parts, ["a"])
    assert numbers == [0, 1, 1, 2]
    assert first.column("a").to_pylist() == ["x", "y", "z"]
    numbers, first = numbered(parts.slice(0, 0), ["a"])
    assert numbers == []
    assert len(first) == 0
