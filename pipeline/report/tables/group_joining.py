"""Joins the parts of an experiment: parts in, its tables out, as if all results had been seen together."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pipeline.performance.metrics import FAMILIES
from pipeline.report.tables.arrow_arrays import array
from pipeline.report.tables.task_groups import GroupTables, no_part

if TYPE_CHECKING:
    import pyarrow as pa

VARIANTS = "variants"


def join_tables(parts: Iterable[GroupTables]) -> dict[str, "pa.Table"]:
    """Every table that parts have, the rows of one part after those of the other."""
    several: dict[str, list[pa.Table]] = {name: [table] for name, table in no_part().tables.items()}
    for part in parts:
        for name, table in part.tables.items():
            several[name].append(table)
    # What is joined is let go: of 100,000 variants, two copies of all tables are gigabytes.
    return {
        name: _join_variants(several.pop(name)) if name == VARIANTS else _join(several.pop(name))
        for name in tuple(several)
    }


def _join(tables: Sequence["pa.Table"]) -> "pa.Table":
    """Tables with the same columns; in one piece, so that how many parts there were is nowhere to be seen."""
    import pyarrow as pa

    filled = [table for table in tables if table.num_rows] or tables[:1]
    return pa.concat_tables(filled).unify_dictionaries().combine_chunks()


def _join_variants(tables: Sequence["pa.Table"]) -> "pa.Table":
    """Some columns depend on what there is: tunables, classes of instructions, baselines."""
    schema = _schema([table.schema for table in tables])
    return _join([_fit(table, schema) for table in tables])


def _schema(schemas: Sequence["pa.Schema"]) -> "pa.Schema":
    """All columns, by kind, then in the order in which the parts come to them."""
    import pyarrow as pa

    distinct: list[pa.Schema] = []
    for schema in schemas:
        if not any(schema.equals(other) for other in distinct):
            distinct.append(schema)
    sections: list[dict[str, pa.Field]] = [{} for _ in range(len(FAMILIES) + 1)]
    for schema in distinct:
        for field in schema:
            section = sections[_section(field.name)]
            known = section.setdefault(field.name, field)
            if known.type != field.type:
                section[field.name] = known.with_type(_common(known.type, field.type))
    return pa.schema([field for section in sections for field in section.values()])


def _section(name: str) -> int:
    """0: the metrics with fixed names; then a section for each family."""
    return next((place for place, family in enumerate(FAMILIES, 1) if name.startswith(family.prefixes)), 0)


def _common(one: "pa.DataType", other: "pa.DataType") -> "pa.DataType":
    """Of a tunable whose name several kernels share."""
    import pyarrow as pa

    return pa.float64() if {one, other} == {pa.int64(), pa.float64()} else pa.string()


def _fit(table: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    import pyarrow as pa

    if table.schema.equals(schema):
        return table
    names = set(table.schema.names)
    columns = [
        _as(table.column(field.name), field.type)
        if field.name in names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _as(column: "pa.ChunkedArray", kind: "pa.DataType") -> "pa.ChunkedArray":
    """Numbers and truth values that become texts are written as Python writes them."""
    import pyarrow as pa

    if column.type == kind:
        return column
    if kind != pa.string():
        return column.cast(kind)
    texts = [None if value is None else str(value) for value in column.to_pylist()]
    return pa.chunked_array([array(texts, "string")])
