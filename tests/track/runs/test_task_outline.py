"""Outlines of tasks: only a task that changed is laid out again, and a damaged outline is made again."""

from pathlib import Path

import pytest

from pipeline.records.results.tracked import TrackedCounts
from pipeline.track.ingest import ingest
from pipeline.track.runs import task_outline
from pipeline.track.runs.variant_run import read_task
from pipeline.track.stores.mlflow_store import MlflowStore, open_store
from tests.track.small_run import TRACKING, compiled, measured, source, write_source


@pytest.fixture
def logged(root: Path) -> MlflowStore:
    """Two tasks whose runs are there, one of them superseded."""
    store = open_store(TRACKING, root)
    ingest(store, write_source(root, [measured(), measured("awkward"), compiled()]), None)
    ingest(store, write_source(root, [measured(eager=2.5), measured("awkward"), compiled()]), None)
    return store


def test_only_a_task_that_changed_is_laid_out(logged: MlflowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs replace the others; of the other tasks nothing is read but their outlines."""
    root = Path(logged.artifacts or "").parents[1]
    write_source(root, [measured(eager=3.5), measured("awkward"), compiled()])
    laid_out: list[str] = []
    run_of = task_outline.run_of

    def counting(result, task, folder, named):
        laid_out.append(task.row.workload)
        return run_of(result, task, folder, named)

    monkeypatch.setattr(task_outline, "run_of", counting)
    done = ingest(logged, source(root), None)
    assert set(laid_out) == {"bert_base"}
    assert done.measured == TrackedCounts(same=5, replaced=5)
    laid_out.clear()
    assert ingest(logged, source(root), None).measured == TrackedCounts(same=10)
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
