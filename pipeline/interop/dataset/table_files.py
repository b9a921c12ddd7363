"""Write tables row by row. In: records. Out: a file in JSON Lines or Parquet, never all of it in memory.

Both formats hold the same: Parquet is written from the cleaned JSON of each row.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.records.record import Record

if TYPE_CHECKING:
    import pyarrow as pa
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

from pipeline.interop.dataset.source_texts import Redactor

Format = Literal["jsonl", "parquet"]
FORMATS: tuple[Format, ...] = ("jsonl", "parquet")
GROUP_BYTES = 16 << 20  # of JSON in one row group
GROUP_ROWS = 2000


class TableWriter(Protocol):
    """A table that is being written; a context manager."""

    rows: int
    """So far."""

    def write(self, record: Record) -> None:
        """Add one row."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def writer(folder: Path, name: str, kind: type[Record], form: Format, cleaner: Redactor) -> TableWriter:
    """For the table `name` of records of a kind."""
    path = folder / f"{name}.{form}"
    return _JsonLines(path, cleaner) if form == "jsonl" else _Parquet(path, kind, cleaner)


class _JsonLines:
    def __init__(self, path: Path, cleaner: Redactor) -> None:
        self.rows = 0
        self._cleaner = cleaner
        self._stream = path.open("wb")

    def write(self, record: Record) -> None:
        self._stream.write(self._cleaner.encoded(msgspec.json.encode(record)) + b"\n")
        self.rows += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()


class _Parquet:
    def __init__(self, path: Path, kind: type[Record], cleaner: Redactor) -> None:
        import pyarrow.parquet as pq

        self.rows = 0
        self._cleaner = cleaner
        self._schema = arrow_schema(kind)
        self._file = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._lines: list[bytes] = []
        self._size = 0

    def write(self, record: Record) -> None:
        line = self._cleaner.encoded(msgspec.json.encode(record))
        self._lines.append(line)
        self._size += len(line)
        self.rows += 1
        if self._size >= GROUP_BYTES or len(self._lines) >= GROUP_ROWS:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._flush()
        self._file.close()

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._lines:
            return
        plain = [msgspec.json.decode(line) for line in self._lines]
        self._file.write_table(pa.Table.from_pylist(plain, schema=self._schema))
        self._lines.clear()
        self._size = 0


def arrow_schema(kind: type[Record]) -> "pa.Schema":
    """Every field typed; what may be absent may be null, and nothing else.

    Raises
    ------
    TypeError
        A field has a type that not every format can hold, such as a mapping.
    """
    import pyarrow as pa

    return pa.schema(_fields(kind))


def _fields(kind: type[Any]) -> "list[pa.Field]":
    import pyarrow as pa

    found = msgspec.inspect.type_info(kind)
    assert isinstance(found, msgspec.inspect.StructType)
    fields = []
    for field in found.fields:
        plain, nullable = _without_none(field.type)
        fields.append(pa.field(field.name, _type(plain, f"{kind.__name__}.{field.name}"), nullable=nullable))
    return fields


def _without_none(kind: msgspec.inspect.Type) -> tuple[msgspec.inspect.Type, bool]:
    """The type, and whether None is one of its values."""
    if not isinstance(kind, msgspec.inspect.UnionType):
        return kind, False
    others = [each for each in kind.types if not isinstance(each, msgspec.inspect.NoneType)]
    return (others[0] if len(others) == 1 else kind), len(others) < len(kind.types)


def _type(kind: msgspec.inspect.Type, where: str) -> "pa.DataType":
    import pyarrow as pa

    inspect = msgspec.inspect
    plain = {inspect.BoolType: pa.bool_(), inspect.IntType: pa.int64(), inspect.FloatType: pa.float64()}
    if type(kind) in plain:
        return plain[type(kind)]
    if isinstance(kind, (inspect.StrType, inspect.EnumType, inspect.LiteralType)):
        return pa.string()
    if isinstance(kind, inspect.VarTupleType):
        item, nullable = _without_none(kind.item_type)
        return pa.list_(pa.field("item", _type(item, where), nullable=nullable))
    if isinstance(kind, inspect.StructType):
        return pa.struct(_fields(kind.cls))
    raise TypeError(f"{where}: {type(kind).__name__} has no column type")
