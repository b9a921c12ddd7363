"""Many runs in one transaction are what they are when the documented calls write them."""

from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from pipeline.records.record import to_json
from pipeline.track.runs.idempotency import TASK_NAME
from pipeline.track.runs.run_writing import RunContext, workload_dataset, write_run
from pipeline.track.runs.task_specs import read_task
from pipeline.track.runs.variant_run import VariantRun, is_measured, run_of
from pipeline.track.stores import bulk_insert
from pipeline.track.stores.mlflow_store import MlflowStore, experiment_id
from tests.track.small_run import measured, results_of, write_source


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


def _new(run: VariantRun, place: RunContext, taken: frozenset[str] = frozenset()) -> bulk_insert.NewRun:
    return bulk_insert.NewRun(run=run, tags=run.tags | {TASK_NAME: place.task_name}, taken=taken)


def _files(folder: str) -> dict[str, bytes]:
    top = Path(folder)
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def test_the_installed_mlflow_has_the_tables_that_we_know(store: MlflowStore) -> None:
    """Where a new version has others, this fails, and runs are written one by one until KNOWN is checked."""
    assert bulk_insert.can_write(store)


def test_other_tables_are_left_alone(store: MlflowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """One column more, and the documented calls are used."""
    monkeypatch.setitem(bulk_insert.KNOWN, "SqlParam", {"key", "value"})
    assert not bulk_insert.can_write(store)


def test_both_ways_give_the_same_run(store: MlflowStore, root: Path, runs: tuple[VariantRun, ...]) -> None:
    """Everything that MLflow tells of it, its dataset and its files."""
    together, alone = _place(store, root, "together"), _place(store, root, "alone")
    ids = bulk_insert.write_runs(store, [_new(run, together) for run in runs], together)
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
    bulk_insert.write_runs(store, [_new(runs[0], place)], place)
    with pytest.raises(IntegrityError):
        bulk_insert.write_runs(store, [_new(run, place) for run in reversed(runs)], place)
    assert len(store.client.search_runs([place.experiment])) == 1


def test_a_dataset_is_there_once(store: MlflowStore, root: Path, runs: tuple[VariantRun, ...]) -> None:
    """However many runs name it, in however many transactions."""
    place = _place(store, root, "x")
    for run in runs:
        bulk_insert.write_runs(store, [_new(run, place)], place)
    found = store.client.search_runs([place.experiment])
    assert len(found) == len(runs)
    assert len({run.inputs.dataset_inputs[0].dataset.digest for run in found}) == 1
