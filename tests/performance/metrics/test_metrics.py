"""Every declared metric is in the tables, in MLflow and in the report's glossary; others may declare more."""

import html
import io
from importlib.metadata import EntryPoint

import msgspec
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from pipeline.performance import metrics
from pipeline.performance.metrics import Metric
from pipeline.records.errors import ConfigError
from pipeline.records.results.collection import Result
from pipeline.report.tables.variants_table import to_csv, to_parquet, variants_table
from pipeline.track.runs import variant_run
from pipeline.track.runs.variant_run import read_task
from tests.report.costs import with_costs
from tests.report.page.test_rendering import make
from tests.report.sample_run import cases, write_run

VALUES = {"string": "text", "bool": True, "int64": 3, "double": 0.25}


def documented() -> list[Metric]:
    """All of the reference."""
    return [metric for group in metrics.reference().values() for metric in group]


@pytest.fixture(scope="module")
def result(collected) -> Result:
    """A measured result with every kind of family: tunables, instructions, baselines, counters."""
    return with_costs(next(result for result in collected.results if result.profiled))


def test_names_are_unique_and_estimates_are_named_so():
    """In tables and in MLflow; what says it is an estimate is named so, and nothing else is."""
    found = documented()
    for names in ([each.name for each in found], [each.mlflow_name for each in found]):
        assert len(set(names)) == len(names)
    estimates = {each.name for each in found if each.meaning.startswith("Estimate")}
    assert estimates == {each.name for each in found if each.name.startswith("estimate_")}


def test_families_are_known_by_their_prefixes():
    """A column belongs to one family, or to none."""
    prefixes = [prefix for family in metrics.FAMILIES for prefix in family.prefixes]
    assert not [each.name for each in metrics.metrics() if each.name.startswith(tuple(prefixes))]
    for family in metrics.FAMILIES:
        assert all(each.name.startswith(family.prefixes) for each in family.documented)


def test_every_metric_is_a_column(result):
    """In CSV and in Parquet, with its type; unit and meaning travel with the Parquet file."""
    table = variants_table([result])
    read = pq.read_table(io.BytesIO(to_parquet(table)))
    csv = pyarrow.csv.read_csv(io.BytesIO(to_csv(table)))
    for metric in metrics.metrics_of([result]):
        field = read.schema.field(metric.name)
        assert str(field.type) == metric.type
        assert field.metadata[b"meaning"].decode() == metric.meaning
        assert field.metadata.get(b"unit", b"").decode() == metric.unit
        assert metric.name in csv.column_names


def test_every_metric_is_in_mlflow(result, root, monkeypatch):
    """Numbers as metrics, the rest as tags, each under a name that MLflow takes unchanged."""
    declared = [
        msgspec.structs.replace(metric, value=lambda _, value=VALUES[metric.type]: value)
        for metric in metrics.metrics_of([result])
    ]
    monkeypatch.setattr(variant_run, "metrics_of", lambda results: declared)
    run = variant_run.run_of(result, read_task(result.task, root), root)
    for metric in declared:
        if metric.mlflow_kind == "metric" and metric.type == "string":
            continue  # a tunable that is a text is a param
        held = run.metrics if metric.is_mlflow_metric else run.tags
        assert metric.mlflow_name in held, metric.name
        if metric.type == "double":
            assert run.metrics[metric.mlflow_name] == 0.25 * metric.mlflow_scale


def test_every_metric_is_in_the_glossary(tmp_path):
    """With its unit and its name in MLflow; headings of those that are shown are in the page's data."""
    write_run(tmp_path, cases()[:1])
    page = make(tmp_path).read_text()
    for metric in documented():
        row = f'<th scope="row"><code>{html.escape(metric.name)}</code></th><td>{metric.unit}</td>'
        assert row in page, metric.name
        assert f"<code>{html.escape(metric.mlflow_name)}</code>" in page
    assert '"heading":"roofline share"' in page


def test_shown_metrics_are_in_order():
    """By position; each baseline's speed-up stands beside the time."""
    headings = [shown.heading for _, shown in metrics.shown_metrics(["eager"])]
    assert headings.index("vs eager PyTorch") == headings.index("time") + 1
    positions = [shown.position for _, shown in metrics.shown_metrics(["eager"])]
    assert positions == sorted(positions)


LOADS = Metric(name="loads", type="int64", meaning="Loads of a call", value=lambda result: 7)


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch):
    """Register entry points of another package."""

    def registered(value: str) -> None:
        entry = EntryPoint(name="other", value=value, group=metrics.GROUP)
        monkeypatch.setattr(metrics, "entry_points", lambda group: {"other": entry})
        metrics.metrics.cache_clear()
        metrics.signature.cache_clear()

    yield registered
    metrics.metrics.cache_clear()
    metrics.signature.cache_clear()


def test_another_package_declares_a_metric(declare, result):
    """It is a column like any other, and what was made without it is stale."""
    before = metrics.signature()
    declare(f"{__name__}:LOADS")
    assert variants_table([result]).column("loads").to_pylist() == [7]
    assert metrics.signature() != before


@pytest.mark.parametrize(
    ("value", "message"),
    [("math:pi", "expected a Metric"), (f"{__name__}:TWICE", "two have the name 'median_seconds'")],
)
def test_a_wrong_declaration_is_one_line(declare, value, message):
    """What is no metric, and a name that is taken."""
    declare(value)
    with pytest.raises(ConfigError, match=message):
        metrics.metrics()


TWICE = (LOADS, msgspec.structs.replace(LOADS, name="median_seconds"))
