"""What a database is asked at once is what MLflow's client says, and spares the runs that are there."""

from pathlib import Path

import pytest

from pipeline.records.results.tracked import Counts
from pipeline.track.ingest import ingest
from pipeline.track.runs import idempotency, task_outline
from pipeline.track.runs.run_writing import RunContext
from pipeline.track.runs.task_specs import read_task
from pipeline.track.stores import bulk_insert, database_queries
from pipeline.track.stores.mlflow_store import MlflowStore, open_store
from tests.track.small_run import TRACKING, compiled, measured, source, write_source

NAMES = [f"softmax/{workload}/cpu/full" for workload in ("bert_base", "awkward", "nowhere")]


@pytest.fixture
def logged(root: Path) -> MlflowStore:
    """Two tasks whose runs are there, one of them superseded."""
    store = open_store(TRACKING, root)
    ingest(store, write_source(root, [measured(), measured("awkward"), compiled()]), None)
    ingest(store, write_source(root, [measured(eager=2.5), measured("awkward"), compiled()]), None)
    return store


def _experiment(store: MlflowStore) -> str:
    return str(store.client.get_experiment_by_name("kernelmill").experiment_id)


def test_all_at_once_is_what_the_client_says(logged: MlflowStore) -> None:
    """Slots, results, states, and of the tags those that are looked at."""
    experiment = _experiment(logged)
    known = database_queries.known_runs(logged, experiment, NAMES)
    assert known is not None and list(known) == NAMES
    assert known["softmax/nowhere/cpu/full"] == {}
    for name in NAMES:
        place = RunContext(
            experiment=experiment, task_name=name, tags={}, sweep="s", dataset=None, task_document=b""
        )
        one_by_one = idempotency._known_runs(logged, place)
        assert set(known[name]) == set(one_by_one)
        for slot, runs in one_by_one.items():
            found = {run.id: run for run in known[name][slot]}
            assert set(found) == {run.id for run in runs}
            for run in runs:
                other = found[run.id]
                assert (other.result, other.active, other.finished) == (run.result, run.active, run.finished)
                assert other.tags == {key: run.tags[key] for key in database_queries.KEYS if key in run.tags}


def test_champions_are_what_the_client_says(logged: MlflowStore) -> None:
    """Version and run of each alias; an unknown model is left out."""
    found = database_queries.known_champions(logged, ["softmax.bert_base", "softmax.awkward", "no.such"])
    assert set(found) == {("softmax.bert_base", "cpu"), ("softmax.awkward", "cpu")}
    for (name, alias), champion in found.items():
        version = logged.client.get_model_version_by_alias(name, alias)
        assert (champion.version, champion.run) == (str(version.version), version.run_id)


def test_other_tables_are_not_asked(logged: MlflowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the documented way is gone, task by task, and comes to the same."""
    monkeypatch.setattr(bulk_insert, "can_write", lambda store: False)
    assert database_queries.known_runs(logged, _experiment(logged), NAMES) is None
    assert database_queries.known_champions(logged, ["softmax.bert_base"]) == {}


def test_only_a_task_that_changed_is_laid_out(logged: MlflowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs replace the others; of the other tasks nothing is read but their outlines."""
    root = Path(logged.artifacts or "").parents[1]
    write_source(root, [measured(eager=3.5), measured("awkward"), compiled()])
    laid_out: list[str] = []
    run_of = task_outline.run_of

    def counting(result, task, folder):
        laid_out.append(task.row.workload)
        return run_of(result, task, folder)

    monkeypatch.setattr(task_outline, "run_of", counting)
    done = ingest(logged, source(root), None)
    assert set(laid_out) == {"bert_base"}
    assert done.measured == Counts(same=5, replaced=5)
    laid_out.clear()
    assert ingest(logged, source(root), None).measured == Counts(same=10)
    assert laid_out == []


def test_a_damaged_outline_is_made_again(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named in one line, and what comes of it is the same."""
    given = write_source(root, [measured()])
    tasks = [read_task(row, root) for row in given.spec.tasks]
    before = task_outline.outlines_of(given.spec, tasks, root)
    (path,) = (root / "store" / task_outline.STAGE).glob("*/*/record.json")
    path.write_bytes(path.read_bytes().replace(b"slot", b"sl0t"))
    capsys.readouterr()
    assert task_outline.outlines_of(given.spec, tasks, root) == before
    assert (
        capsys.readouterr().err
        == f"{path.parent}: damaged (record.json is not what was written), made again\n"
    )
