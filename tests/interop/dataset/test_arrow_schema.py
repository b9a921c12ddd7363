"""Column types from records."""

import pyarrow as pa
import pytest

from pipeline.interop.dataset.row_schema import DatasetRow, File, PlatformPair
from pipeline.interop.dataset.table_files import arrow_schema
from pipeline.records.record import Record


class Inner(Record, frozen=True, kw_only=True):
    """Nested."""

    share: float | None


class Outer(Record, frozen=True, kw_only=True):
    """Of every kind."""

    name: str
    count: int | None
    parts: tuple[Inner, ...]


class Mapped(Record, frozen=True, kw_only=True):
    """With names that only its rows know."""

    values: dict[str, int]


def test_types_and_what_may_be_absent() -> None:
    """Nested ones, too."""
    inner = pa.struct([pa.field("share", pa.float64())])
    parts = pa.list_(pa.field("item", inner, nullable=False))
    assert arrow_schema(Outer) == pa.schema(
        [
            pa.field("name", pa.string(), nullable=False),
            pa.field("count", pa.int64()),
            pa.field("parts", parts, nullable=False),
        ]
    )


@pytest.mark.parametrize("kind", [DatasetRow, PlatformPair, File])
def test_the_tables_have_one(kind: type[Record]) -> None:
    """Every field of them."""
    assert arrow_schema(kind).names == list(kind.__struct_fields__)


def test_mappings_have_none() -> None:
    """They would have other columns in every row."""
    with pytest.raises(TypeError, match=r"Mapped\.values: DictType has no column type"):
        arrow_schema(Mapped)
