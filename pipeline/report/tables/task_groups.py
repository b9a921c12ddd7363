"""One group's part of the tables: tasks and the store in, tables, winners and counts of these tasks out.

A group are the tasks of one kernel, workload and hardware: winners, effects and choices of facts compare
variants within it and never beyond. Its part is an entry of the store, `store/aggregate/…`, under a name that
is derived from the content of every file that it is made from, the tasks, and the code and libraries that
make it. One that is damaged is removed and made again.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pipeline.performance.bound_error import find_errors
from pipeline.performance.metrics import FAMILIES, signature
from pipeline.records.layout import entry_path
from pipeline.records.planning.specs import AggregateSpec, TaskRow
from pipeline.records.record import Record, digest, digest_bytes, from_message, to_json
from pipeline.records.results.aggregated import AgentUse, NotMeasured, Winner
from pipeline.records.results.collection import Collected, collect, read_files
from pipeline.report.summary import ResultCounts, tally
from pipeline.report.tables.ablation_table import ablation_table, find_ablations
from pipeline.report.tables.attempts_table import agent_uses, attempts_table
from pipeline.report.tables.effects_table import effects_table, find_effects
from pipeline.report.tables.estimate_error_table import error_table
from pipeline.report.tables.facts_table import choose, counters_table, diagnoses_table, facts_table
from pipeline.report.tables.search_tables import find_prunings, find_rounds, pruning_table, rounds_table
from pipeline.report.tables.variants_table import (
    array,
    outcomes_table,
    pruned_table,
    samples_table,
    variants_table,
)
from pipeline.report.winner_selection import find_winners
from pipeline.store.local_cache import drop_kept, find_kept, keep

if TYPE_CHECKING:
    import pyarrow as pa


STAGE = "aggregate"
CODEC = "zstd"
TABLES = "tables.msgpack"
"""Table -> Arrow's stream format, all together compressed."""


class GroupSummary(Record, frozen=True, kw_only=True):
    """What of a part is no table."""

    key: str
    winners: tuple[Winner | NotMeasured, ...]
    tally: ResultCounts
    agents: tuple[AgentUse, ...]
    prunings: tuple[str, ...]
    """What static pruning lost, a sentence for each task that prunes."""


class GroupTables(Record, frozen=True, kw_only=True):
    """What one group adds."""

    condensed: GroupSummary
    tables: Mapping[str, "pa.Table"]


def groups(spec: AggregateSpec) -> list[AggregateSpec]:
    """The spec of each group alone, in the order in which the plan comes to them."""
    tasks: dict[tuple[str, ...], list[TaskRow]] = {}
    for task in spec.tasks:
        tasks.setdefault((task.kernel, task.workload, task.hardware), []).append(task)
    return [
        msgspec.structs.replace(spec, tasks=tuple(group), pruned=(), mutations=()) for group in tasks.values()
    ]


def parts_of(groups: Sequence[AggregateSpec], root: Path, pool: Executor) -> list[GroupTables]:
    """Each group's part: from the store, or made and put there.

    Raises
    ------
    StoreError
        An output of a group is missing or cannot be read, or there is no space.
    """
    # To look at files takes most of the time and leaves Python's lock alone; to make a part does not.
    found = pool.map(lambda group: _find(root, _key(group, root, read_files(group.tasks, root))), groups)
    return [part or _new(group, root) for group, part in zip(groups, found, strict=True)]


def _new(group: AggregateSpec, root: Path) -> GroupTables:
    contents = read_files(group.tasks, root)
    condensed, tables = make_group(_key(group, root, contents), collect(group, root, contents))
    keep(root, STAGE, condensed, {TABLES: tables})
    # As the store holds it, so that a part is the same whether it was made now or earlier.
    return GroupTables(condensed=condensed, tables=_unpack(tables))


def _key(group: AggregateSpec, root: Path, contents: Mapping[Path, bytes]) -> str:
    files = {path.relative_to(root).as_posix(): digest_bytes(content) for path, content in contents.items()}
    return digest([group.tasks, group.origin, group.build, signature(), files])


def _find(root: Path, key: str) -> GroupTables | None:
    """None where there is none that is whole."""
    condensed = find_kept(root, STAGE, key, GroupSummary)
    if condensed is None:
        return None
    try:
        content = (entry_path(root, STAGE, key) / TABLES).read_bytes()
        return GroupTables(condensed=condensed, tables=_unpack(content))
    except (OSError, ValueError):  # of another version; Arrow and msgspec raise kinds of the second
        drop_kept(root, STAGE, key)
        return None


def make_group(key: str, collected: Collected) -> tuple[GroupSummary, bytes]:
    """What one group adds: what is no table, and its tables, packed."""
    results, prunings = collected.results, find_prunings(collected)
    tables = {
        "variants": variants_table(results),
        "samples": samples_table(results),
        "outcomes": outcomes_table(results),
        "pruned": pruned_table((), collected.generated),
        "effects": effects_table(find_effects(results)),
        "static_facts": facts_table(choose(results)),
        "estimate_error": error_table(find_errors(results)),
        "diagnoses": diagnoses_table(results, collected.declared),
        "counters": counters_table(results),
        "attempts": attempts_table(collected),
        "rounds": rounds_table(find_rounds(collected)),
        "ablation": ablation_table(find_ablations(collected)),
        "pruning": pruning_table(prunings),
    }
    condensed = GroupSummary(
        key=key,
        winners=find_winners(results),
        tally=tally(results),
        agents=agent_uses(collected),
        prunings=tuple(each.sentence for each in prunings),
    )
    packed = _squeeze({name: _pack(table) for name, table in tables.items()})
    # Through JSON, as the store gives it back.
    return msgspec.json.decode(to_json(condensed), type=GroupSummary), packed


def _pack(table: "pa.Table") -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue())


class _Packed(Record, frozen=True, kw_only=True):
    size: int
    content: bytes


def _squeeze(tables: Mapping[str, bytes]) -> bytes:
    """Texts that repeat are most of it: a tenth is left, which takes less time to read and to check."""
    import pyarrow as pa

    content = msgspec.msgpack.encode(tables)
    squeezed = pa.compress(content, codec=CODEC, asbytes=True)
    return msgspec.msgpack.encode(_Packed(size=len(content), content=squeezed))


def _unpack(content: bytes) -> dict[str, "pa.Table"]:
    import pyarrow as pa

    outer = from_message(content, _Packed)
    plain = pa.decompress(outer.content, outer.size, codec=CODEC, asbytes=True)
    packed = from_message(plain, dict[str, bytes])
    return {name: pa.ipc.open_stream(pa.py_buffer(stream)).read_all() for name, stream in packed.items()}


def no_part() -> GroupTables:
    """Of no tasks: all tables with their columns, and no rows."""
    condensed, tables = make_group("", Collected(results=(), generated=()))
    return GroupTables(condensed=condensed, tables=_unpack(tables))


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
