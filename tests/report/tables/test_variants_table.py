"""The tables of variants, samples and outcomes, and the Arrow arrays that they are made of."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from pipeline.performance.metrics.call_times import CALL_TIMES
from pipeline.performance.metrics.energy_and_memory import ENERGY_AND_MEMORY
from pipeline.performance.metrics.rates_and_ceilings import RATES_AND_CEILINGS
from pipeline.report.tables.variants_table import (
    array,
    outcomes_table,
    pruned_table,
    repeated,
    samples_table,
    to_csv,
    to_parquet,
    variants_table,
)
from tests.report.costs import with_costs, without_costs


@pytest.fixture(scope="module")
def variants(collected) -> pa.Table:
    """The main table."""
    return variants_table(collected.results)


def where(table: pa.Table, **names: str) -> list[dict]:
    """Rows that have these values."""
    return [row for row in table.to_pylist() if all(row[name] == value for name, value in names.items())]


def test_one_row_per_task_and_variant(variants, collected):
    """The table has a row for every result, failed ones too."""
    assert variants.num_rows == len(collected.results)


def test_no_measurement_without_a_device(variants):
    """A target that is not here has no time, no share, no verdict: null, not zero."""
    rows = where(variants, hardware="h200")
    measured = [column.name for column in (*CALL_TIMES, *RATES_AND_CEILINGS, *ENERGY_AND_MEMORY)]
    measured += [
        name for name in variants.column_names if name.startswith(("speedup.", "verdict.", "baseline."))
    ]
    assert rows
    assert all(row[name] is None for row in rows for name in measured)


def test_estimates_have_columns_of_their_own(variants):
    """What is known of an absent device from its peaks stands in estimate columns only."""
    (row, *_) = where(variants, hardware="h200", kernel="softmax")
    assert row["estimate_roofline_seconds"] == pytest.approx(8 * 512 * 4096 / 4.8e12)
    assert row["estimate_bound"] == "memory"
    assert row["estimate_occupancy"] == 1.0


def test_undeclared_peak_gives_no_estimate(variants):
    """A target that does not declare the peak has no estimate rather than a wrong one."""
    assert all(row["estimate_roofline_seconds"] is None for row in where(variants, hardware="cpu"))


def test_unknown_fact_is_null(variants):
    """A CPU has no registers per thread: the column is null there, and 0 spills on a GPU stay 0."""
    assert all(row["registers"] is None and row["spills"] is None for row in where(variants, hardware="cpu"))
    spills = {row["spills"] for row in where(variants, hardware="h200", kernel="softmax")}
    assert spills == {0}


def test_failure_keeps_stage_reason_and_log(variants, root):
    """A failed row says where, why, and leads to its log."""
    (row,) = where(variants, outcome="wrong_value")
    assert (row["stage"], row["compile_outcome"], row["profile_outcome"]) == ("verify", "passed", None)
    assert row["reason"].startswith("y[17, 3] = 0.25")
    assert (root / row["log"]).read_text().startswith("y[17, 3]")


def test_tunables_are_typed_columns(variants):
    """Each tunable is a column with the type of its values; kernels without it have null."""
    schema = variants.schema
    assert schema.field("tunable.unroll").type == pa.int64()
    assert schema.field("tunable.vectorize").type == pa.bool_()
    assert all(row["tunable.unroll"] is None for row in where(variants, kernel="matmul"))


def test_tunable_with_mixed_types_is_text(collected):
    """The same name with a number in one kernel and a word in another is written as text."""
    import msgspec

    one, other = collected.results[0], collected.results[1]
    changed = [
        msgspec.structs.replace(
            result, variant=msgspec.structs.replace(result.variant, tunables={"order": value})
        )
        for result, value in ((one, 3), (other, "row"))
    ]
    table = variants_table(changed)
    assert table.column("tunable.order").to_pylist() == ["3", "row"]


def test_speedups_with_interval_and_verdict(variants):
    """Each baseline has a ratio, its interval and a verdict; an absent one has its reason."""
    (row, *_) = where(variants, kernel="softmax", workload="awkward")
    assert row["speedup.eager.low"] < row["speedup.eager"] < row["speedup.eager.high"]
    assert row["verdict.eager"] in ("faster", "slower", "indistinguishable")
    assert row["speedup.compile"] is None and "no C++ compiler" in row["absent.compile"]


def test_costs_beside_time(collected):
    """Energy, memory, clock and throttling in plain units; the product of energy and delay is derived."""
    measured = next(result for result in collected.results if result.profiled)
    (row,) = variants_table([with_costs(measured)]).to_pylist()
    assert (row["energy_joules"], row["mean_watts"]) == (0.25, 500.0)
    assert row["energy_delay"] == pytest.approx(0.25 * row["median_seconds"])
    assert (row["peak_device_bytes"], row["first_call_device_bytes"]) == (16 << 20, 48 << 20)
    assert (row["peak_host_bytes"], row["first_call_host_bytes"]) == (0, 5 << 20)
    assert (row["clock_mhz_low"], row["clock_mhz_high"]) == (1755.0, 1980.0)
    assert (row["temperature_celsius"], row["sampled_watts"], row["condition_samples"]) == (61.0, 480.0, 9)
    assert row["throttled"] == "software power cap, sync boost"
    assert (row["stolen"], row["unmeasured"]) == (None, None)


def test_costs_that_could_not_be_measured(collected):
    """Null, with the reasons in a column of their own."""
    measured = next(result for result in collected.results if result.profiled)
    (row,) = variants_table([without_costs(measured)]).to_pylist()
    assert row["unmeasured"] == "energy: no RAPL; counters: not allowed"
    assert all(row[column.name] is None for column in ENERGY_AND_MEMORY if column.name != "unmeasured")


def test_schema_says_what_columns_mean(variants):
    """Unit and meaning travel with the file."""
    metadata = variants.schema.field("median_seconds").metadata
    assert metadata[b"unit"] == b"s"
    assert metadata[b"meaning"].startswith(b"Time of one call")


def test_samples_are_the_raw_ones(collected):
    """Every sample of every series, in the order taken."""
    table = samples_table(collected.results)
    result = next(result for result in collected.results if result.profiled)
    rows = where(table, task=result.task.task, variant=result.id, callable="candidate")
    assert tuple(row["seconds"] for row in rows) == result.profiled.timing.samples
    assert [row["batch"] for row in rows] == list(range(len(rows)))


def test_samples_of_nothing_measured():
    """No measurement gives an empty table with the same schema, not an error."""
    assert samples_table([]).schema.names == ["task", "variant", "callable", "process", "batch", "seconds"]


def test_outcomes_count_every_variant_in_every_stage(collected):
    """What compile passed is what verify judged: the funnel adds up."""
    rows = outcomes_table(collected.results).to_pylist()

    def total(stage: str, outcome: str | None = None) -> int:
        return sum(
            row["count"] for row in rows if row["stage"] == stage and outcome in (None, row["outcome"])
        )

    assert total("generate") == total("compile") == len(collected.results)
    assert total("compile", "passed") == total("verify")
    assert total("verify", "passed") == total("profile")


def test_pruned_cells_and_points(spec, collected):
    """Both what the plan left out and what constraints exclude are listed with their reasons."""
    rows = pruned_table(spec.pruned, collected.generated).to_pylist()
    assert [row["reason"] for row in rows if row["scope"] == "cell"] == list(spec.pruned)
    points = [row for row in rows if row["scope"] == "points"]
    assert {(row["count"], row["reason"]) for row in points} == {(12, "the tile does not fit shared memory")}


def test_files_hold_the_table(variants, tmp_path):
    """Parquet gives back the table with its schema; CSV has the same rows, and an empty field for null."""
    (tmp_path / "v.parquet").write_bytes(to_parquet(variants))
    (tmp_path / "v.csv").write_bytes(to_csv(variants))
    assert pq.read_table(tmp_path / "v.parquet").equals(variants, check_metadata=True)
    read = pyarrow.csv.read_csv(tmp_path / "v.csv")
    assert read.num_rows == variants.num_rows and read.column_names == variants.column_names
    assert read.column("median_seconds").null_count == variants.column("median_seconds").null_count


VALUES = {
    "string": ["", "one", None, "zwölf ✓", None, "x" * 300],
    "int64": [0, None, -1, 1 << 62, None],
    "double": [0.0, None, -1.5, float("inf"), 1e-300, 3],
    "bool": [True, None, False, *[True, False, None] * 9],
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("absent", ["some", "none", "all", "empty"])
def test_equals_what_arrow_makes(kind, absent):
    """Values and absent values, of every kind that tables have."""
    values = {
        "some": VALUES[kind],
        "none": [value for value in VALUES[kind] if value is not None],
        "all": [None] * 11,
        "empty": [],
    }[absent]
    made = array(values, kind)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.type_for_alias(kind)))


@pytest.mark.parametrize(("kind", "value"), [("int64", 1.5), ("bool", 1), ("int64", "1"), ("double", "x")])
def test_another_kind_is_refused(kind, value):
    """Nothing is cut off or taken for something else."""
    with pytest.raises((TypeError, ValueError)):
        array([value], kind)


def test_repeated_texts_are_numbers():
    """Each text as often as asked, the distinct ones once, in the order in which they come."""
    made = repeated(["b", "a", "b"], [2, 1, 0])
    made.validate(full=True)
    assert made.to_pylist() == ["b", "b", "a"]
    assert made.dictionary.to_pylist() == ["b", "a"]


def test_pandas_stays_out():
    """The point of it: half a second in every job that makes tables."""
    code = (
        "import sys; from pipeline.report.tables.variants_table import array; array(['a', None], 'string');"
    )
    code += "array([1.0], 'double'); sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
