"""The table of hardware counters."""

from pipeline.records.results.collection import Collected
from pipeline.report.tables.counters_table import SCHEMA, counters_table
from tests.report.costs import with_costs, without_costs


def test_call_launches_and_what_is_absent(collected: Collected):
    """The call's value has no launch; each launch has its own; an absent counter has its reason, no value."""
    measured = next(result for result in collected.results if result.profiled)
    rows = counters_table([with_costs(measured)]).to_pylist()
    assert {(row["task"], row["variant"], row["tool"]) for row in rows} == {
        (measured.task.task, measured.id, "ncu")
    }
    found = [tuple(row[name] for name in ("launch", "kernel", "counter", "value", "absent")) for row in rows]
    read, tensor = "dram__bytes_read.sum", "sm__inst_executed_pipe_tensor.sum"
    assert found == [
        (None, None, read, 96.0, None),
        (None, None, tensor, None, "not on this device"),
        (0, "first", read, 64.0, None),
        (1, "second", read, 32.0, None),
    ]


def test_without_counters_the_table_is_empty(collected: Collected):
    """Nothing measured, or nothing to be had: the schema stands."""
    measured = next(result for result in collected.results if result.profiled)
    table = counters_table([without_costs(measured), *collected.results])
    assert (table.num_rows, table.schema.names) == (0, list(SCHEMA))
