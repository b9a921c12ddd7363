"""Submissions of judged candidates into MLflow."""

import urllib.parse
from pathlib import Path

import msgspec
import pytest
from mlflow.entities import Run as MlflowRun

from pipeline.records.results.scored import ScoredCandidate, Submission
from pipeline.records.results.tracked import TrackedCounts
from pipeline.track.runs.idempotency import IngestLedger
from pipeline.track.stores.mlflow_store import MlflowStore
from pipeline.track.submission_ingest import SubmissionFiles, TrackedSubmission, ingest_submission
from tests.performance.submissions import failed, measured, problem, submission


def files(root: Path) -> SubmissionFiles:
    """A table and a page."""
    table, page = root / "candidates.csv", root / "leaderboard.html"
    table.write_text("problem\n")
    page.write_text("<!doctype html>\n")
    return SubmissionFiles(table=table, page=page)


def of(name: str, *others: ScoredCandidate) -> Submission:
    """One candidate that is fast and one that is wrong."""
    return submission(
        name,
        problem("softmax", measured(2.0, compiled=0.9, name="fast"), level="1"),
        problem("matmul", failed(name="wrong"), *others, level="2"),
    )


def ingested(store: MlflowStore, made: Submission, root: Path) -> TrackedSubmission:
    """Log one."""
    return ingest_submission(store, made, files(root), "kernelmill", IngestLedger())


def runs(store: MlflowStore, suffix: str) -> list[MlflowRun]:
    """The active runs of an experiment."""
    found = store.client.get_experiment_by_name(f"kernelmill{suffix}")
    assert found is not None
    return list(store.client.search_runs([found.experiment_id]))


def test_one_run_per_candidate(store: MlflowStore, root: Path) -> None:
    """Params say what it is, tags how it ended, metrics how fast it is."""
    done = ingested(store, of("a model"), root)
    assert done.candidates == TrackedCounts(new=2)
    by_name = {run.data.params["solution"]: run.data for run in runs(store, "-candidates")}
    fast, wrong = by_name["fast"], by_name["wrong"]
    assert fast.params["problem"] == "softmax"
    assert (fast.tags["outcome"], fast.tags["hardware"], fast.tags["id"]) == ("passed", "cpu", "id0")
    assert fast.tags["submission_run"] == done.run
    assert fast.metrics["speedup/eager"] == 2.0
    assert fast.metrics["speedup/eager_low"] < 2.0 < fast.metrics["speedup/eager_high"]
    assert fast.metrics["time/median_us"] == pytest.approx(500.0)
    assert fast.metrics["estimate/bound_share"] == 0.25
    assert fast.tags["verdict/compile"] == "slower"
    assert wrong.tags["outcome"] == "wrong_value"
    assert wrong.metrics == {}


def test_one_run_per_submission(store: MlflowStore, root: Path) -> None:
    """Scores with intervals, per level what ranks, the leaderboard and the table as artifacts."""
    done = ingested(store, of("a model"), root)
    (run,) = runs(store, "-submissions")
    assert run.info.run_id == done.run
    assert (run.data.metrics["correct"], run.data.metrics["eager/fast_1"]) == (0.5, 0.5)
    assert run.data.metrics["compile/fast_1"] == 0.0
    assert run.data.metrics["level_2/eager_fast_1"] == 0.0
    assert run.data.metrics["eager/fast_1_low"] < 0.5 < run.data.metrics["eager/fast_1_high"]
    paths = {each.path for each in store.client.list_artifacts(done.run)}
    assert paths == {"result.json", "candidates.csv", "leaderboard.html"}


def test_again_changes_nothing(store: MlflowStore, root: Path) -> None:
    """The same result, judged at another time, is the same runs."""
    first = ingested(store, of("a model"), root)
    made = of("a model")
    later = msgspec.structs.replace(made.provenance, created="2025-02-28T12:00:00+00:00", git="abc")
    again = ingested(store, msgspec.structs.replace(made, provenance=later), root)
    assert again.candidates == TrackedCounts(same=2)
    assert again.run == first.run
    assert len(runs(store, "-submissions")) == 1
    assert len(runs(store, "-candidates")) == 2


def test_a_changed_submission_replaces_its_predecessor(store: MlflowStore, root: Path) -> None:
    """A candidate more: the submission has another run, the known candidates keep theirs."""
    first = ingested(store, of("a model"), root)
    second = ingested(store, of("a model", measured(1.5, name="other", sample=1)), root)
    assert second.candidates == TrackedCounts(new=1, same=2)
    (run,) = runs(store, "-submissions")
    assert run.data.tags["supersedes"] == first.run
    assert {each.data.tags["submission_run"] for each in runs(store, "-candidates")} == {second.run}


def test_the_compare_page_has_the_others(store: MlflowStore, root: Path) -> None:
    """Those on the same problems, the best first."""
    best = submission("best", *(problem(name, measured(2.0)) for name in ("softmax", "matmul")))
    elsewhere = submission("elsewhere", problem("another", measured(2.0)))
    for made in (best, elsewhere):
        ingested(store, made, root)
    done = ingested(store, of("a model"), root)
    assert done.compared == 2
    query = urllib.parse.parse_qs(done.compare.split("?", 1)[1])["runs"][0]
    first, second = msgspec.json.decode(query)
    assert store.client.get_run(first).data.tags["submission"] == "best"
    assert second == done.run


def test_names_with_quotes(store: MlflowStore, root: Path) -> None:
    """A name that ends MLflow's quotes is one submission, again and again."""
    name = 'it\'s "quoted" %_ `x`'
    for _ in range(2):
        ingested(store, of(name), root)
    (run,) = runs(store, "-submissions")
    assert run.data.params["submission"] == name


def test_the_source_and_the_reason_are_artifacts(store: MlflowStore, root: Path) -> None:
    """Of a candidate whose file is there."""
    path = root / "wrong.py"
    path.write_text("class ModelNew: ...\n")
    wrong = msgspec.structs.replace(failed(name="wrong"), path=str(path))
    ingested(store, submission("a model", problem("softmax", wrong)), root)
    (run,) = runs(store, "-candidates")
    folder = Path(urllib.parse.urlsplit(run.info.artifact_uri).path)
    assert (folder / "source" / "wrong.py").read_text() == path.read_text()
    assert (folder / "reason.txt").read_text().strip() == wrong.reason


def test_the_note_says_where_to_look(store: MlflowStore, root: Path) -> None:
    """Links that work wherever the UI is served, and the scores."""
    done = ingested(store, of("a model"), root)
    note = store.client.get_run(done.run).data.tags["mlflow.note.content"]
    assert "](#/compare-runs?" in note.splitlines()[0]
    assert "| eager | 50 % (9.5 % to 91 %) |" in note
    found = store.client.get_experiment_by_name("kernelmill-submissions")
    assert found is not None
    assert "| eager/fast_1 | share |" in found.tags["mlflow.note.content"]
