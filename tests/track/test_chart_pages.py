"""Chart pages laid out in advance."""

import json

from pipeline.track import chart_pages
from pipeline.track.chart_pages import ExplainingMetrics

EXPLAINED = ExplainingMetrics(
    tunables={"cpp": ("vectorize", "unroll", "schedule")},
    numeric=frozenset({"vectorize", "unroll"}),
    facts=("static/registers",),
)
EXPERIMENT_TAG = 20_000  # characters of an experiment's tag, in MLflow 3.17


def _state(page: chart_pages.ChartPage) -> dict[str, list[dict[str, object]]]:
    return json.loads(chart_pages.state(page))


def test_a_task_shows_its_own_runs_fastest_first() -> None:
    """Filter and order of the table."""
    state = _state(chart_pages.task_page("t1", "speedup/eager", EXPLAINED))
    assert state["searchFilter"] == "tags.task = 't1'"
    assert state["orderByKey"] == "metrics.`speedup/eager`"
    assert state["orderByAsc"] is False


def test_the_strongest_tunable_stands_next_to_the_goal() -> None:
    """Axes run from the weakest to the strongest; all runs are drawn, not the first ten."""
    chart = _state(chart_pages.task_page("t1", "speedup/eager", EXPLAINED))["compareRunCharts"][0]
    assert chart["type"] == "PARALLEL"
    assert chart["selectedParams"] == ["schedule", "unroll", "vectorize"]
    assert chart["selectedMetrics"] == ["speedup/eager"]
    assert chart["showAllRuns"] is True


def test_each_implementation_has_its_own_parallel_coordinates() -> None:
    """The UI drops runs that lack one of the axes."""
    both = ExplainingMetrics(
        tunables={"cpp": ("unroll",), "triton": ("num_warps",)}, numeric=frozenset(), facts=()
    )
    charts = _state(chart_pages.task_page("t1", "speedup/eager", both))["compareRunCharts"]
    assert [chart["selectedParams"] for chart in charts] == [["unroll"], ["num_warps"]]


def test_only_numbers_are_scattered() -> None:
    """A tunable that is text has no axis."""
    charts = _state(chart_pages.task_page("t1", "speedup/eager", EXPLAINED))["compareRunCharts"]
    keys = [chart["xaxis"]["key"] for chart in charts if chart["type"] == "SCATTER"]
    assert keys == ["tunable/vectorize", "tunable/unroll", "static/registers"]


def test_every_chart_stands_in_a_section() -> None:
    """A chart of an unknown section would not be shown."""
    for page in (
        chart_pages.task_page("t1", "speedup/eager", EXPLAINED),
        chart_pages.winners_page("speedup/eager"),
        chart_pages.compiled_page(),
        chart_pages.rounds_page("s1", {"softmax": ("best_us/tpe/softmax",)}),
    ):
        state = _state(page)
        sections = {section["uuid"] for section in state["compareRunSections"]}
        assert {chart["metricSectionId"] for chart in state["compareRunCharts"]} <= sections


def test_nothing_is_offered_where_nothing_differs() -> None:
    """A language model's variants have equal tunables: no parallel coordinates, but rounds and changes."""
    written = ExplainingMetrics(
        tunables={},
        numeric=frozenset(),
        facts=("static/code_bytes",),
        in_rounds=True,
        authors=("agent/change",),
    )
    state = _state(chart_pages.task_page("t1", "speedup/eager", written))
    charts = state["compareRunCharts"]
    assert [(chart["type"], chart["xaxis"]["key"]) for chart in charts] == [
        ("SCATTER", "search/round"),
        ("SCATTER", "static/code_bytes"),
    ]
    titles = [section["name"] for section in state["compareRunSections"] if section["display"]]
    assert titles == ["Round by round", "One at a time"]
    assert state["selectedColumns"][:2] == ["tags.`agent/change`", "metrics.`search/round`"]


def test_a_page_has_a_chart_at_least() -> None:
    """Of one variant: its bar."""
    alone = ExplainingMetrics(tunables={}, numeric=frozenset(), facts=())
    (chart,) = _state(chart_pages.task_page("t1", "speedup/eager", alone))["compareRunCharts"]
    assert (chart["type"], chart["metricKey"]) == ("BAR", "speedup/eager")


def test_searches_of_one_kernel_share_a_chart() -> None:
    """The best so far of each by round, of this sweep alone."""
    curves = {
        "softmax · cpu": ("best_us/tpe/softmax/cpu", "best_us/random/softmax/cpu"),
        "matmul · cpu": ("m",),
    }
    state = _state(chart_pages.rounds_page("s1", curves))
    charts = state["compareRunCharts"]
    assert [chart["type"] for chart in charts] == ["LINE", "LINE"]
    assert charts[0]["selectedMetricKeys"] == ["best_us/tpe/softmax/cpu", "best_us/random/softmax/cpu"]
    assert charts[0]["xAxisKey"] == "step"
    assert state["searchFilter"] == "tags.`kernelmill.sweep` = 's1'"


def test_compiled_variants_show_no_measurement() -> None:
    """Neither a time nor a speed-up; the estimate is called one."""
    text = chart_pages.state(chart_pages.compiled_page())
    columns = json.loads(text)["selectedColumns"]
    assert not any("time/" in column or "speedup/" in column for column in columns)
    assert "metrics.`estimate/occupancy`" in columns


def test_a_page_with_many_tunables_fits_a_tag() -> None:
    """MLflow refuses a longer one."""
    many = tuple(f"A_LONG_TUNABLE_NAME_{number}" for number in range(60))
    page = chart_pages.task_page(
        "t" * 20,
        "speedup/eager",
        ExplainingMetrics(tunables={"cpp": many}, numeric=frozenset(many), facts=()),
    )
    assert len(chart_pages.state(page)) < EXPERIMENT_TAG
