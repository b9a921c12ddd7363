"""Many runs in one transaction are what they are when the documented calls write them."""

from pathlib import Path

import mlflow
import pytest
from mlflow.entities import ViewType
from sqlalchemy.exc import IntegrityError

from pipeline.records.record import to_json
from pipeline.records.results.tracked import TrackedCounts
from pipeline.track.ingest import ingest
from pipeline.track.runs.run_writing import (
    RESULT,
    SLOT,
    TASK_NAME,
    RunContext,
    workload_dataset,
    write_run,
)
from pipeline.track.runs.variant_run import VariantRun, is_measured, read_task, run_of
from pipeline.track.stores import mlflow_database
from pipeline.track.stores.mlflow_store import MlflowStore, experiment_id, open_store
from tests.track.small_run import TRACKING, compiled, measured, results_of, write_source


@pytest.fixture
def runs(root: Path) -> tuple[VariantRun, ...]:
    """Of a small task."""
    results = [result for result in results_of(write_source(root, [measured()])) if is_measured(result)]
    task = read_task(results[0].task, root)
    return tuple(run_of(result, task, root) for result in results)


def _place(store: MlflowStore, root: Path, name: str) -> RunContext:
    row = write_source(root, [measured()]).spec.tasks[0]
    task = read_task(row, root)
    return RunContext(
        experiment=experiment_id(store, name, {}),
        task_name=task.name,
        tags={},
        sweep="s",
        dataset=workload_dataset(task),
        task_document=to_json(task),
    )


def _new(run: VariantRun, place: RunContext, taken: frozenset[str] = frozenset()) -> mlflow_database.NewRun:
    return mlflow_database.NewRun(run=run, tags=run.tags | {TASK_NAME: place.task_name}, taken=taken)


def _files(folder: str) -> dict[str, bytes]:
    top = Path(folder)
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def test_the_installed_mlflow_has_the_tables_that_we_know(store: MlflowStore) -> None:
    """Where a new version has others, this fails, and runs are written one by one until KNOWN is checked."""
    assert mlflow_database.is_supported(store)


def test_other_tables_are_left_alone(store: MlflowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """One column more, and the documented calls are used."""
    monkeypatch.setitem(mlflow_database.KNOWN, "SqlParam", {"key", "value"})
    assert not mlflow_database.is_supported(store)


def test_both_ways_give_the_same_run(store: MlflowStore, root: Path, runs: tuple[VariantRun, ...]) -> None:
    """Everything that MLflow tells of it, its dataset and its files."""
    together, alone = _place(store, root, "together"), _place(store, root, "alone")
    ids = mlflow_database.write_runs(store, [_new(run, together) for run in runs], together)
    for run in runs:
        single = write_run(store, run, _new(run, alone).tags, alone)
        one, other = (store.client.get_run(identity) for identity in (ids[run.slot], single))
        differing = {"run_id", "run_uuid", "artifact_uri", "experiment_id"}
        infos = [{k: v for k, v in dict(found.info).items() if k not in differing} for found in (one, other)]
        assert infos[0] == infos[1]
        assert one.data.to_dictionary() == other.data.to_dictionary()
        inputs = [[entry.to_dictionary() for entry in found.inputs.dataset_inputs] for found in (one, other)]
        assert inputs[0] == inputs[1] != []
        assert _files(one.info.artifact_uri) == _files(other.info.artifact_uri) != {}
        ours, theirs = (
            store.client.get_metric_history(found.info.run_id, "time/median_us") for found in (one, other)
        )
        assert [dict(each) | {"run_id": ""} for each in ours] == [
            dict(each) | {"run_id": ""} for each in theirs
        ]


def test_a_second_writer_is_refused_by_the_database(
    store: MlflowStore, root: Path, runs: tuple[VariantRun, ...]
) -> None:
    """Even one that took no turn; and of his transaction nothing stays."""
    place = _place(store, root, "x")
    mlflow_database.write_runs(store, [_new(runs[0], place)], place)
    with pytest.raises(IntegrityError):
        mlflow_database.write_runs(store, [_new(run, place) for run in reversed(runs)], place)
    assert len(store.client.search_runs([place.experiment])) == 1


def test_a_dataset_is_there_once(store: MlflowStore, root: Path, runs: tuple[VariantRun, ...]) -> None:
    """However many runs name it, in however many transactions."""
    place = _place(store, root, "x")
    for run in runs:
        mlflow_database.write_runs(store, [_new(run, place)], place)
    found = store.client.search_runs([place.experiment])
    assert len(found) == len(runs)
    assert len({run.inputs.dataset_inputs[0].dataset.digest for run in found}) == 1


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
    known = mlflow_database.known_runs(logged, experiment, NAMES)
    assert known is not None and list(known) == NAMES
    assert known["softmax/nowhere/cpu/full"] == {}
    for name in NAMES:
        query = f"tags.{TASK_NAME} = '{name}'"
        runs = logged.client.search_runs([experiment], query, run_view_type=ViewType.ALL)
        found = {run.id: run for several in known[name].values() for run in several}
        assert set(found) == {run.info.run_id for run in runs}
        for run in runs:
            one = found[run.info.run_id]
            assert (one.active, one.finished) == (
                run.info.lifecycle_stage == "active",
                run.info.status == "FINISHED",
            )
            tags = run.data.tags
            assert (one.result, one.tags) == (
                tags[RESULT],
                {key: tags[key] for key in mlflow_database.KEYS if key in tags},
            )
            assert one in known[name][tags[SLOT]]


def test_champions_are_what_the_client_says(logged: MlflowStore) -> None:
    """Version and run of each alias; an unknown model is left out."""
    found = mlflow_database.known_champions(logged, ["softmax.bert_base", "softmax.awkward", "no.such"])
    assert set(found) == {("softmax.bert_base", "cpu"), ("softmax.awkward", "cpu")}
    for (name, alias), champion in found.items():
        version = logged.client.get_model_version_by_alias(name, alias)
        assert (champion.version, champion.run) == (str(version.version), version.run_id)


@pytest.mark.slow
def test_another_version_is_left_alone(logged: MlflowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the client is used for everything, run by run, and finds and writes the same."""
    for version in ("3.9.1", "3.18.0", "4.0", "unknown"):
        monkeypatch.setattr(mlflow, "__version__", version)
        assert not mlflow_database.is_supported(logged), version
        assert mlflow_database.known_runs(logged, _experiment(logged), NAMES) is None
        assert mlflow_database.known_champions(logged, ["softmax.bert_base"]) == {}


@pytest.mark.slow
def test_ingestion_is_the_same_without(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the client alone, a fresh store gets the same runs, and another ingestion finds them."""
    given = write_source(root, [measured(), compiled()])
    stores = {}
    for way in ("tables", "client"):
        if way == "client":
            monkeypatch.setattr(mlflow, "__version__", "4.0")
        stores[way] = open_store(TRACKING, tmp_path / way)
        assert ingest(stores[way], given, None).measured == TrackedCounts(new=5)
        assert ingest(stores[way], given, None).measured == TrackedCounts(same=5)
    found = [
        {
            run.data.tags[SLOT]: (run.info.run_name, run.data.metrics, run.data.params, run.data.tags[RESULT])
            for run in store.client.search_runs([_experiment(store)])
        }
        for store in stores.values()
    ]
    assert found[0] == found[1] != {}
