"""The schema of a table: a Record in, the same fields with the same types as a pyarrow schema out."""

from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.records.record import Record

if TYPE_CHECKING:
    import pyarrow as pa


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
