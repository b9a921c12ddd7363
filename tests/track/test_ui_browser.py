"""The MLflow UI in a real browser: the prepared pages show what a user came for.

The screenshots are kept in artifacts/screenshots/."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.track.ingest import Ingested, ingest
from pipeline.track.mlflow_ui import HOST, PORT
from pipeline.track.stores.mlflow_store import open_store
from tests.paths import ROOT
from tests.report.sample_run import CPP, cases
from tests.track import browser
from tests.track.mlflow_server import serving
from tests.track.small_run import TRACKING, copy_store, with_a_second_round, write_source

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(400),
    pytest.mark.skipif(browser.missing() is not None, reason=str(browser.missing())),
]

SCREENSHOTS = ROOT / "artifacts" / "screenshots"
TUNABLES = sorted(CPP)
KERNELS = ("softmax", "matmul")


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory, template: Path) -> tuple[Path, Ingested]:
    """Runs that look like real ones: two CPU tasks, and one kernel on seven GPUs that are absent."""
    root = tmp_path_factory.mktemp("ui")
    copy_store(template, root)
    wanted = [
        case
        for case in cases()
        if (case.kernel in KERNELS and case.eager) or (case.kernel == "softmax" and case.hardware != "cpu")
    ]
    source = with_a_second_round(write_source(root, wanted), root / "rounds")
    return root, ingest(open_store(TRACKING, root), source, None)


@pytest.fixture(scope="module")
def server(logged: tuple[Path, Ingested]) -> Iterator[str]:
    """`make ui` on a free port."""
    with serving(logged[0]) as base:
        yield base


@pytest.fixture(scope="module")
def driver(server: str) -> Iterator[Any]:
    """One browser for all pages."""
    assert server
    with browser.browser() as opened:
        yield opened


def _at(address: str, server: str) -> str:
    return address.replace(f"http://{HOST}:{PORT}", server)


@pytest.mark.slow
def test_compare_page_shows_which_tunables_matter(
    logged: tuple[Path, Ingested], server: str, driver: Any
) -> None:
    """Parallel coordinates over exactly the tunables, coloured by the speed-up, without a click."""
    task = next(task for task in logged[1].links.tasks if task.title.startswith("softmax · llama3_8b_decode"))
    browser.open_page(driver, _at(task.compare, server))
    axes = browser.wait_for(lambda: browser.axes(driver), "the parallel-coordinates plot")
    assert axes == [*TUNABLES, "speedup/eager"]
    assert f"Comparing {task.runs} Runs" in driver.find_element("tag name", "body").text
    browser.picture(driver, SCREENSHOTS / "mlflow_compare.png")
    assert browser.coloured(driver, ".js-plotly-plot") > 2000
    assert browser.outside(driver, server) == []


@pytest.mark.slow
def test_chart_page_opens_prepared(logged: tuple[Path, Ingested], server: str, driver: Any) -> None:
    """All runs of the task, the strongest tunable next to the speed-up, each one scattered below."""
    task = next(task for task in logged[1].links.tasks if task.title.startswith("softmax · llama3_8b_decode"))
    browser.open_page(driver, _at(task.charts, server))
    axes = browser.wait_for(lambda: browser.axes(driver), "the prepared parallel-coordinates chart")
    assert sorted(axes[:-1]) == TUNABLES
    assert axes[-2:] == ["vectorize", "speedup/eager"]
    text = driver.find_element("tag name", "body").text
    assert "Which tunables matter" in text
    assert f"{task.runs} matching runs" in text
    assert "share key" not in text
    browser.picture(driver, SCREENSHOTS / "mlflow_charts.png")
    assert browser.coloured(driver, ".parcoords") > 2000
    assert browser.outside(driver, server) == []


@pytest.mark.slow
def test_searches_page_draws_a_curve_for_each_kernel(
    logged: tuple[Path, Ingested], server: str, driver: Any
) -> None:
    """Best so far by round, without a click."""
    assert logged[1].links.searches is not None
    browser.open_page(driver, _at(logged[1].links.searches, server))
    lines = ".js-plotly-plot .scatterlayer .js-line"
    count = len(logged[1].links.tasks)
    browser.wait_for(lambda: len(driver.find_elements("css selector", lines)) >= count, "a line per kernel")
    text = driver.find_element("tag name", "body").text
    assert "Best so far in µs, round by round" in text
    assert "softmax/llama3_8b_decode/cpu" in text
    assert "1 matching run" in text
    browser.picture(driver, SCREENSHOTS / "mlflow_searches.png")


@pytest.mark.slow
def test_winners_page_has_a_bar_per_winner(logged: tuple[Path, Ingested], server: str, driver: Any) -> None:
    """One run per kernel and workload, not the first hundred."""
    browser.open_page(driver, _at(logged[1].links.charts, server))
    bars = ".js-plotly-plot .bars .point"
    count = len(logged[1].champions)
    browser.wait_for(lambda: len(browser.texts(driver, bars)) >= 2 * count, "a bar per winner, in two charts")
    assert f"{count} matching runs" in driver.find_element("tag name", "body").text
    browser.picture(driver, SCREENSHOTS / "mlflow_winners.png")


@pytest.mark.slow
def test_targets_page_is_a_table_of_facts(logged: tuple[Path, Ingested], server: str, driver: Any) -> None:
    """The default variant on each of the seven absent GPUs, and no time anywhere."""
    assert logged[1].links.compiled is not None
    browser.open_page(driver, _at(logged[1].links.compiled, server))
    body = lambda: driver.find_element("tag name", "body").text  # noqa: E731
    browser.wait_for(lambda: "7 matching runs" in body(), "seven runs")
    text = browser.wait_for(lambda: body() if "mi355x" in body() else "", "the targets")
    for name in ("h200", "h100", "a100", "b200", "rtx4090", "mi300x", "static/registers", "estimate/occup"):
        assert name in text
    assert "time/" not in text
    browser.picture(driver, SCREENSHOTS / "mlflow_targets.png")
