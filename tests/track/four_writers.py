"""Four processes that ingest different, overlapping and equal sweeps at once, and what must come of it."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from mlflow.entities import Run as MlflowRun
from mlflow.entities import ViewType

from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.record import to_json
from pipeline.records.results.collection import Result
from pipeline.track.ingest import IngestSource
from pipeline.track.runs.mlflow_names import SWEEP
from pipeline.track.runs.run_writing import RESULT, SLOT, WINNER
from pipeline.track.runs.task_outline import runs_of
from pipeline.track.runs.variant_run import VariantRun, is_measured, is_only_compiled, read_task
from pipeline.track.stores.mlflow_store import MlflowStore
from pipeline.track.stores.store_locks import NAME as LEASE
from tests.track.small_run import compiled, measured, results_of, write_source
from tests.track.writer import Writer

SPACE = {"unroll": (1, 2, 4), "vectorize": (False, True), "threads_grain": (1,)}
MODELS = {"softmax.bert_base", "softmax.llama3_8b_decode"}


def sources(folder: Path, tracking: Tracking) -> list[IngestSource]:
    """One sweep twice; another one; and one that overlaps both, with other results for the second's slots."""
    bert, llama = (measured(name, space=SPACE) for name in ("bert_base", "llama3_8b_decode"))
    sweeps = [[bert, compiled()], [llama], [bert, llama], [bert, compiled()]]
    return [write_source(folder / f"writer{number}", cases, tracking) for number, cases in enumerate(sweeps)]


def start(source: IngestSource) -> Writer:
    """Ingest in a process of its own."""
    root = source.root
    arguments = [
        *("--spec", root / "spec.json", "--aggregate", source.aggregate),
        *("--out", root / "tracked.json", "--root", root),
    ]
    return Writer([str(argument) for argument in arguments], root / "said.txt")


def ingest_at_once(given: Sequence[IngestSource]) -> None:
    """All of them, side by side; each must succeed."""
    ends = [writer.end(200) for writer in [start(source) for source in given]]
    assert [code for code, _ in ends] == [0] * len(given), "\n".join(said for _, said in ends)


def kill_in_the_middle(source: IngestSource, begun: Callable[[], bool]) -> None:
    """End a writer without warning once `begun` says that it wrote something."""
    writer = start(source)
    end = time.monotonic() + 120
    while not begun() and writer.goes_on():
        assert time.monotonic() < end, "the writer wrote nothing"
        time.sleep(0.005)
    assert writer.goes_on(), f"the writer had ended: {writer.end(0)}"
    os.killpg(writer.pid, signal.SIGKILL)
    writer.end(30)


def assert_whole(store: MlflowStore, given: Sequence[IngestSource]) -> None:
    """Nothing is lost and nothing is there twice."""
    wanted = _wanted(given)
    found = _runs(store, "", ViewType.ACTIVE_ONLY) + _runs(store, "-compiled", ViewType.ACTIVE_ONLY)
    slots = Counter(run.data.tags[SLOT] for run in found)
    assert set(slots) == {slot for slot, _ in wanted}
    assert set(slots.values()) == {1}, "a variant has two runs"
    for run in found:
        _assert_run(store, run, wanted[run.data.tags[SLOT], run.data.tags[RESULT]])
    for run in _runs(store, "", ViewType.DELETED_ONLY):
        assert run.info.status != "FINISHED" or "superseded_by" in run.data.tags
    sweeps = _runs(store, "-sweeps", ViewType.ALL)
    assert len({run.data.tags[SWEEP] for run in sweeps}) == len(sweeps) == len(_distinct(given))
    assert {run.info.status for run in sweeps} == {"FINISHED"}
    _assert_models(store, {run.info.run_id: run for run in found})
    names = [entry.name for entry in store.client.search_experiments(view_type=ViewType.ALL)]
    assert len(set(names)) == len(names)


def _wanted(given: Sequence[IngestSource]) -> dict[tuple[str, str], VariantRun]:
    """Slot and result -> the run as it must be."""
    wanted = {}
    for source in given:
        for row in source.spec.tasks:
            for run in runs_of(source.spec, read_task(row, source.root), source.root, _is_tracked):
                wanted[run.slot, run.result] = run
    return wanted


def _is_tracked(result: Result) -> bool:
    return is_measured(result) or is_only_compiled(result)


def _distinct(given: Sequence[IngestSource]) -> set[bytes]:
    return {to_json([result.records for result in results_of(source)]) for source in given}


def _assert_run(store: MlflowStore, run: MlflowRun, wanted: VariantRun) -> None:
    assert run.info.status == "FINISHED"
    assert run.info.run_name == wanted.name
    assert dict(run.data.params) == wanted.params
    metrics = dict(run.data.metrics)
    assert metrics.keys() == wanted.metrics.keys()
    assert all(abs(metrics[name] - value) <= 1e-9 * abs(value) for name, value in wanted.metrics.items())
    assert wanted.tags.items() <= run.data.tags.items()
    assert len(run.inputs.dataset_inputs) == (run.data.tags["status"] == "measured")
    paths = {entry.path for entry in store.client.list_artifacts(run.info.run_id)}
    assert paths == {"kernel", "result.json", "task.json"}
    document = store.client.download_artifacts(run.info.run_id, "result.json")
    assert json.loads(Path(document).read_text()) == json.loads(to_json(wanted.record))
    assert [entry.path for entry in store.client.list_artifacts(run.info.run_id, "kernel")] != []


def _assert_models(store: MlflowStore, active: dict[str, MlflowRun]) -> None:
    models = store.client.search_registered_models()
    assert {model.name for model in models if not model.name.startswith(LEASE)} == MODELS
    assert not [model.name for model in models if model.name.startswith(LEASE)], "the lease was kept"
    champions = set()
    for name in MODELS:
        versions = store.client.search_model_versions(f"name = '{name}'")
        runs = [version.run_id for version in versions]
        assert len(set(runs)) == len(runs), "a run has two versions"
        assert sorted(int(version.version) for version in versions) == list(range(1, len(versions) + 1))
        champions.add(store.client.get_model_version_by_alias(name, "cpu").run_id)
    assert champions <= active.keys(), "an alias points to a run that was superseded"
    assert {run for run, found in active.items() if WINNER in found.data.tags} == champions


def _runs(store: MlflowStore, suffix: str, view: int) -> list[MlflowRun]:
    experiment = store.client.get_experiment_by_name(f"kernelmill{suffix}")
    assert experiment is not None
    return list(store.client.search_runs([experiment.experiment_id], run_view_type=view))
