import pytest

from pipeline.report.tables.static_facts_table import choose, facts_markdown, facts_table


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
