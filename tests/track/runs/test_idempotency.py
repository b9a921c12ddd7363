"""The same result is one run; a changed one replaces its predecessor."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from mlflow.entities import Run as MlflowRun
from mlflow.entities import ViewType

from pipeline.records.record import to_json
from pipeline.records.results.tracked import TrackedCounts
from pipeline.track.runs.idempotency import log_runs
from pipeline.track.runs.run_writing import SLOT, RunContext, workload_dataset
from pipeline.track.runs.variant_run import TrackedTask, VariantRun, is_measured, read_task, run_of
from pipeline.track.stores.mlflow_store import MlflowStore, experiment_id
from tests.track.small_run import measured, results_of, write_source


class Setting(msgspec.Struct):
    """A store, and the runs of a task that belong in it."""

    store: MlflowStore
    task: TrackedTask
    runs: tuple[VariantRun, ...]
    experiment: str

    def log(
        self, runs: Sequence[VariantRun] | None = None, task: str = "t1"
    ) -> tuple[dict[str, str], TrackedCounts]:
        """Ingest; slot -> run id, and the counts."""
        place = RunContext(
            experiment=self.experiment,
            task_name=self.task.name,
            tags={"task": task},
            sweep="s1",
            dataset=workload_dataset(self.task),
            task_document=to_json(self.task),
        )
        logged = log_runs(self.store, self.runs if runs is None else runs, place)
        return logged.runs, logged.counts

    def found(self, view: int = ViewType.ACTIVE_ONLY) -> list[MlflowRun]:
        """What MLflow holds."""
        return list(self.store.client.search_runs([self.experiment], run_view_type=view))

    def get(self, identity: str) -> MlflowRun:
        """One run."""
        return self.store.client.get_run(identity)


@pytest.fixture
def setting(root: Path, store: MlflowStore) -> Setting:
    """Nothing is logged yet."""
    results = [result for result in results_of(write_source(root, [measured()])) if is_measured(result)]
    task = read_task(results[0].task, root)
    runs = tuple(run_of(result, task, root) for result in results[:3])
    return Setting(store, task, runs, experiment_id(store, "kernelmill", {}))


def _changed(run: VariantRun, result: str = "another") -> VariantRun:
    return msgspec.structs.replace(run, result=result, metrics=run.metrics | {"time/median_us": 1.0})


def test_a_new_result_is_a_run(setting: Setting) -> None:
    """Params, metrics, tags and the workload as a dataset arrive, and the run is finished."""
    runs, counts = setting.log()
    assert counts == TrackedCounts(new=3)
    wanted = setting.runs[0]
    run = setting.get(runs[wanted.slot])
    assert run.info.status == "FINISHED"
    assert run.info.run_name == wanted.name
    assert dict(run.data.params) == wanted.params
    assert dict(run.data.metrics) == pytest.approx(wanted.metrics)
    assert (wanted.tags | {"task": "t1"}).items() <= run.data.tags.items()
    assert [entry.dataset.name for entry in run.inputs.dataset_inputs] == ["bert_base"]


def test_it_is_dated_when_it_was_measured(setting: Setting) -> None:
    """Not when it was logged."""
    runs, _ = setting.log()
    info = setting.get(runs[setting.runs[0].slot]).info
    assert (info.start_time, info.end_time) == (setting.runs[0].started, setting.runs[0].ended)


def test_the_same_result_twice_is_one_run(setting: Setting) -> None:
    """The ids stay."""
    first, _ = setting.log()
    second, counts = setting.log()
    assert counts == TrackedCounts(same=3)
    assert second == first
    assert len(setting.found(ViewType.ALL)) == 3


def test_a_changed_result_replaces_its_predecessor(setting: Setting) -> None:
    """Each names the other; only the new one is in view."""
    first, _ = setting.log()
    slot = setting.runs[0].slot
    second, counts = setting.log([_changed(setting.runs[0]), *setting.runs[1:]])
    assert counts == TrackedCounts(same=2, replaced=1)
    old, new = setting.get(first[slot]), setting.get(second[slot])
    assert old.info.lifecycle_stage == "deleted"
    assert old.data.tags["superseded_by"] == new.info.run_id
    assert new.data.tags["supersedes"] == old.info.run_id
    assert old.data.metrics["time/median_us"] != new.data.metrics["time/median_us"] == 1.0
    assert {run.info.run_id for run in setting.found()} == set(second.values())


def test_a_result_that_comes_back_is_the_run_it_was(setting: Setting) -> None:
    """For example after an edit was taken back and the store still holds what was measured before."""
    first, _ = setting.log()
    slot = setting.runs[0].slot
    second, _ = setting.log([_changed(setting.runs[0])])
    third, counts = setting.log([setting.runs[0]])
    assert counts == TrackedCounts(replaced=1)
    assert third[slot] == first[slot]
    run = setting.get(third[slot])
    assert run.info.lifecycle_stage == "active"
    assert "superseded_by" not in run.data.tags
    assert setting.get(second[slot]).data.tags["superseded_by"] == third[slot]


def test_what_a_kill_left_half_is_logged_again(setting: Setting) -> None:
    """A run that was not finished does not count, and goes out of view."""
    first, _ = setting.log()
    slot = setting.runs[0].slot
    setting.store.client.update_run(first[slot], status="RUNNING")
    second, counts = setting.log()
    assert counts == TrackedCounts(new=1, same=2)
    assert second[slot] != first[slot]
    assert "supersedes" not in setting.get(second[slot]).data.tags
    assert len(setting.found()) == 3


def test_a_known_run_moves_to_the_task_that_has_it_now(setting: Setting) -> None:
    """The links of the new task find it."""
    runs, _ = setting.log(task="t1")
    _, counts = setting.log(task="t2")
    assert counts == TrackedCounts(same=3)
    assert {setting.get(run).data.tags["task"] for run in runs.values()} == {"t2"}


def test_more_runs_than_a_page_are_found(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search goes on to the last page."""
    monkeypatch.setattr("pipeline.track.runs.idempotency.PAGE", 2)
    setting.log()
    _, counts = setting.log()
    assert counts == TrackedCounts(same=3)


def test_awkward_names_and_long_values_are_logged(setting: Setting) -> None:
    """Whatever a tunable is called, and however long its value is."""
    from pipeline.track.runs import mlflow_names

    run = msgspec.structs.replace(
        setting.runs[0],
        params={mlflow_names.key("share (%)"): mlflow_names.param("x" * 9000)},
        metrics={mlflow_names.key("tunable/share (%)"): 1.0, mlflow_names.key("a[b]" * 100): 2.0},
        tags={"seeds": mlflow_names.tag("1 " * 9000)},
    )
    runs, _ = setting.log([run])
    data = setting.get(runs[run.slot]).data
    assert dict(data.params) == run.params
    assert dict(data.metrics) == run.metrics
    assert data.tags["seeds"] == run.tags["seeds"]
    assert data.tags[SLOT] == run.slot


def test_artifacts_hold_what_is_needed_to_repeat_it(setting: Setting) -> None:
    """Records, specs, and the binary."""
    runs, _ = setting.log()
    identity = runs[setting.runs[0].slot]
    paths = [entry.path for entry in setting.store.client.list_artifacts(identity)]
    assert paths == ["kernel", "result.json", "task.json"]
    assert [entry.path for entry in setting.store.client.list_artifacts(identity, "kernel")] == [
        "kernel/kernel.so"
    ]
