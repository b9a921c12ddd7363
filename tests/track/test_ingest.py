"""A whole experiment into MLflow."""

import json
import re
import urllib.parse
from pathlib import Path

import msgspec
import pytest
from mlflow.entities import Run as MlflowRun

from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import read_record
from pipeline.records.results.tracked import TrackedCounts
from pipeline.track.ingest import Ingested, ingest
from pipeline.track.mlflow_ui import within
from pipeline.track.stores.mlflow_store import MlflowStore, open_store
from tests.track.small_run import (
    TRACKING,
    compiled,
    copy_store,
    measured,
    source,
    with_a_second_round,
    write_source,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, template: Path) -> Path:
    """One store for the tests of this module, none of which takes anything out of it."""
    folder = tmp_path_factory.mktemp("ingest")
    copy_store(template, folder)
    return folder


@pytest.fixture(scope="module")
def store(root: Path) -> MlflowStore:
    """The open store."""
    return open_store(TRACKING, root)


@pytest.fixture(scope="module")
def done(root: Path, store: MlflowStore) -> Ingested:
    """A measured task and two without their device, logged."""
    return ingest(store, write_source(root, [measured(), compiled("h200"), compiled("mi300x")]), None)


def _runs(store: MlflowStore, done: Ingested, suffix: str) -> list[MlflowRun]:
    return list(store.client.search_runs([done.experiments[f"kernelmill{suffix}"]]))


def test_measured_runs_stand_alone(store: MlflowStore, done: Ingested) -> None:
    """Each run of the experiment was measured; the wrong variant is none of them."""
    runs = _runs(store, done, "")
    assert done.measured == TrackedCounts(new=5)
    assert {run.data.tags["status"] for run in runs} == {"measured"}
    assert all("time/median_us" in run.data.metrics for run in runs)


def test_runs_are_flat(store: MlflowStore, done: Ingested) -> None:
    """Children of a parent run stay collapsed and out of the charts."""
    assert not any("mlflow.parentRunId" in run.data.tags for run in _runs(store, done, ""))


def test_what_was_only_compiled_has_its_own_experiment(store: MlflowStore, done: Ingested) -> None:
    """Registers can be compared across targets there, and never be taken for a measurement."""
    runs = _runs(store, done, "-compiled")
    assert done.compiled == TrackedCounts(new=8)
    assert {run.data.tags["hardware"] for run in runs} == {"h200", "mi300x"}
    assert not any("time/" in name or "speedup/" in name for run in runs for name in run.data.metrics)


def test_the_sweep_holds_tables_and_counts(store: MlflowStore, done: Ingested) -> None:
    """One finished run; failures are counted by cause."""
    (sweep,) = _runs(store, done, "-sweeps")
    assert sweep.info.run_id == done.sweep
    assert sweep.info.status == "FINISHED"
    assert sweep.data.metrics["verify/wrong_value"] == 1.0
    assert sweep.data.metrics["profile/device_unavailable"] == 8.0
    paths = {entry.path for entry in store.client.list_artifacts(done.sweep, "tables")}
    assert {"tables/variants.parquet", "tables/winners.csv"} <= paths


def test_the_sweep_says_who_won_and_where_to_look(store: MlflowStore, done: Ingested) -> None:
    """A table of winners with links, as the run's description."""
    note = store.client.get_run(done.sweep).data.tags["mlflow.note.content"]
    assert "| softmax | bert_base | cpu |" in note
    assert f"({within(done.links.tasks[0].charts)})" in note


def test_the_sweeps_geometric_mean_is_that_of_its_winners(store: MlflowStore, done: Ingested) -> None:
    """With one winner it is its speed-up."""
    winner = store.client.get_run(done.champions[0].run).data.metrics["speedup/eager"]
    metrics = store.client.get_run(done.sweep).data.metrics
    assert metrics["winners/geomean_speedup_eager"] == pytest.approx(winner)
    assert metrics["winners/share_faster_eager"] == 1.0


def test_again_changes_nothing(root: Path, store: MlflowStore, done: Ingested) -> None:
    """Neither runs nor sweeps nor versions are added, and the links stay."""
    again = ingest(store, source(root), None)
    assert (again.measured, again.compiled) == (TrackedCounts(same=5), TrackedCounts(same=8))
    assert again.sweep == done.sweep
    assert again.champions == done.champions
    assert again.links == done.links
    assert len(_runs(store, done, "-sweeps")) == 1


def test_links_lead_to_prepared_pages(store: MlflowStore, done: Ingested) -> None:
    """Each key is a tag of the experiment that it is opened in."""
    for address in (done.links.charts, done.links.compiled, done.links.tasks[0].charts):
        assert address is not None
        path, query = address.split("#", 1)[1].split("?", 1)
        key = urllib.parse.parse_qs(query)["viewStateShareKey"][0]
        tags = store.client.get_experiment(path.split("/")[2]).tags
        assert json.loads(tags[f"mlflow.sharedViewState.{key}"])["compareRunCharts"]


def test_the_strongest_tunable_comes_first(store: MlflowStore, done: Ingested) -> None:
    """In the order of the effects that aggregate found: vectorize makes more of a difference than unroll."""
    experiment = store.client.get_experiment(done.experiments["kernelmill"])
    states = [json.loads(text) for key, text in experiment.tags.items() if "sharedViewState" in key]
    charts = [chart for state in states for chart in state["compareRunCharts"]]
    axes = next(chart["selectedParams"] for chart in charts if chart["type"] == "PARALLEL")
    assert axes == ["unroll", "vectorize"]


def test_the_compare_page_starts_with_the_fastest(store: MlflowStore, done: Ingested) -> None:
    """The winner stands first among the columns."""
    query = urllib.parse.parse_qs(done.links.tasks[0].compare.split("?", 1)[1])
    runs = json.loads(query["runs"][0])
    assert runs[0] == done.champions[0].run
    assert done.links.tasks[0].compared == done.links.tasks[0].runs == len(runs) == 5


def test_runs_can_be_told_apart_by_name(store: MlflowStore, done: Ingested) -> None:
    """Kernel and tunables first: lists cut names off."""
    names = [run.info.run_name for run in _runs(store, done, "")]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"softmax unroll=\d vectorize=\w+ · bert_base cpu cpp", name) for name in names)
    (sweep,) = _runs(store, done, "-sweeps")
    assert sweep.info.run_name.endswith(f": {sweep.data.tags['varies']}")
    assert sweep.data.tags["varies"].startswith("softmax × bert_base × cpu, ")
    assert sweep.data.tags["result"] == "5 passed, 8 device_unavailable, 1 wrong_value"


def test_experiments_describe_themselves(root: Path, store: MlflowStore, done: Ingested) -> None:
    """Links first, then units; what a user wrote stays."""
    experiment = done.experiments["kernelmill"]

    def text() -> str:
        return str(store.client.get_experiment(experiment).tags["mlflow.note.content"])

    assert done.links.runs is not None
    assert within(done.links.runs) in text().splitlines()[0]
    assert "| time/median_us | µs |" in text()
    before = text()
    store.client.set_experiment_tag(experiment, "mlflow.note.content", "mine")
    ingest(store, source(root), None)
    assert text() == "mine"
    store.client.set_experiment_tag(experiment, "mlflow.note.content", before)


def test_trials_share_a_page(tmp_path: Path, template: Path) -> None:
    """Tasks of one variant each, that differ in overrides: all runs, compared by what differs."""
    copy_store(template, tmp_path)
    store = open_store(TRACKING, tmp_path)
    values = (1, 2)
    cases = [
        measured(workload=f"bert_base[unroll={value}]", space={"unroll": (value,)}, failures={})
        for value in values
    ]
    found = write_source(tmp_path, cases)
    rows = tuple(
        msgspec.structs.replace(row, varied=(f"optimization.fixed.unroll={value}",))
        for row, value in zip(found.spec.tasks, values, strict=True)
    )
    spec = msgspec.structs.replace(found.spec, tasks=rows)
    done = ingest(store, msgspec.structs.replace(found, spec=spec), None)
    (task,) = done.links.tasks
    assert (task.runs, task.compared, task.differ) == (2, 2, True)
    key = urllib.parse.parse_qs(task.charts.split("?", 1)[1])["viewStateShareKey"][0]
    tags = store.client.get_experiment(done.experiments["kernelmill"]).tags
    state = json.loads(tags[f"mlflow.sharedViewState.{key}"])
    assert len(store.client.search_runs([done.experiments["kernelmill"]], state["searchFilter"])) == 2
    assert state["compareRunCharts"][0]["selectedParams"] == ["unroll"]


def test_one_round_has_no_curve(done: Ingested) -> None:
    """A grid is no search of several rounds."""
    assert done.links.searches is None


def test_a_search_of_several_rounds_has_its_curve(tmp_path: Path, template: Path) -> None:
    """Metrics by round on the sweep's run, a page that draws them, a link to it in the sweep's text."""
    copy_store(template, tmp_path)
    store = open_store(TRACKING, tmp_path)
    found = write_source(tmp_path, [measured()])
    done = ingest(store, with_a_second_round(found, tmp_path / "changed"), None)
    (metric,) = [
        name for name in store.client.get_run(done.sweep).data.metrics if name.startswith("best_us/")
    ]
    history = store.client.get_metric_history(done.sweep, metric)
    assert [each.step for each in history] == [0, 1]
    assert history[1].value == pytest.approx(history[0].value / 2)
    assert done.links.searches is not None
    assert within(done.links.searches) in store.client.get_run(done.sweep).data.tags["mlflow.note.content"]
    states = [
        json.loads(text)
        for key, text in store.client.get_experiment(done.experiments["kernelmill-sweeps"]).tags.items()
        if "sharedViewState" in key
    ]
    lines = [chart for state in states for chart in state["compareRunCharts"] if chart["type"] == "LINE"]
    assert [chart["selectedMetricKeys"] for chart in lines] == [[metric]]


def test_equal_tunables_are_not_compared(tmp_path: Path, template: Path) -> None:
    """Of variants that differ in no tunable the compare page would be empty: it is not offered."""
    copy_store(template, tmp_path)
    store = open_store(TRACKING, tmp_path)
    done = ingest(store, write_source(tmp_path, [measured(space={"unroll": (1,)}, failures={})]), None)
    (task,) = done.links.tasks
    assert (task.compare, task.compared, task.differ) == (None, 0, False)
    note = store.client.get_run(done.sweep).data.tags["mlflow.note.content"]
    assert f"[its variants]({within(task.charts)})" in note
    assert "which tunables matter" not in note


def test_the_specs_ingested_are_kept(root: Path, store: MlflowStore, done: Ingested) -> None:
    """The sweep can be read back from its run alone."""
    path = store.client.download_artifacts(done.sweep, "spec.json", str(root))
    assert read_record(Path(path), AggregateSpec).experiment == "sample"


def test_one_task_more_is_a_new_sweep_with_the_old_runs(tmp_path: Path, template: Path) -> None:
    """What was logged before stays the run it was."""
    copy_store(template, tmp_path)
    store = open_store(TRACKING, tmp_path)
    first = ingest(store, write_source(tmp_path, [measured()]), None)
    second = ingest(store, write_source(tmp_path, [measured(), measured("awkward")]), None)
    assert second.measured == TrackedCounts(new=5, same=5)
    assert second.sweep != first.sweep
    assert len(_runs(store, second, "-sweeps")) == 2
