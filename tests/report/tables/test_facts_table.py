"""Tables of static facts and counters."""

import pytest

from pipeline.records.results.collection import Collected
from pipeline.report.tables.facts_table import SCHEMA, choose, counters_table, facts_markdown, facts_table
from tests.report.costs import with_costs, without_costs


@pytest.fixture(scope="module")
def chosen(collected):
    """What stands for each kernel and target."""
    return choose(collected.results)


def test_default_variant_of_every_kernel_and_target(chosen):
    """Seven GPU targets, three kernels: each has its default variant's facts."""
    rows = facts_table(chosen).to_pylist()
    defaults = [row for row in rows if row["choice"] == "default" and row["implementation"] == "triton"]
    assert len(defaults) == 21
    assert all(row["registers"] and row["architecture"] for row in defaults)


def test_best_occupancy_is_no_worse_than_the_default(chosen):
    """The second choice has at least the bound of the first."""
    bounds = {
        (entry.result.task.task, entry.choice): entry.result.compiled.facts.occupancy_bound
        for entry in chosen
        if entry.result.compiled and entry.result.compiled.facts.occupancy_bound
    }
    tasks = {task for task, _ in bounds}
    assert tasks
    assert all(bounds[(task, "best occupancy")] >= bounds[(task, "default")] for task in tasks)


def test_default_that_failed_shows_its_reason(chosen):
    """A default that did not compile is a row with its outcome, not a gap."""
    rows = facts_table(chosen).to_pylist()
    (row,) = [row for row in rows if row["kernel"] == "matmul_bias_gelu"]
    assert (row["outcome"], row["code_bytes"]) == ("compile_error", None)
    assert "gelu.hpp" in row["reason"]


def test_another_variant_stands_for_a_missing_default(collected):
    """Where the default was not proposed the first variant is shown, and not called the default."""
    others = [result for result in collected.results if not result.default]
    assert {entry.choice for entry in choose(others)} == {"first proposed", "best occupancy"}


def test_markdown_for_the_docs(chosen):
    """One table per kernel over the targets; an unknown fact is a dash, a count of none is 0."""
    text = facts_markdown(facts_table(chosen).to_pylist())
    assert text.count("### ") == 3
    assert "| h200 | sm_90 |" in text and "| mi355x | gfx950 |" in text
    assert "| cpu |" not in text


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
