"""The same code against an MLflow server."""

from pathlib import Path

import msgspec
import pytest

from pipeline.records.results.tracked import TrackedCounts
from pipeline.track.ingest import ingest
from pipeline.track.stores.mlflow_store import open_store
from tests.track.mlflow_server import serving
from tests.track.small_run import TRACKING, compiled, copy_store, measured, source, write_source


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_server_takes_what_the_embedded_store_takes(
    tmp_path: Path, template: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Runs, artifacts, models; the second time nothing is new; no line is printed for each run."""
    copy_store(template, tmp_path / "server")
    with serving(tmp_path / "server") as base:
        tracking = msgspec.structs.replace(TRACKING, uri=base)
        written = write_source(tmp_path / "client", [measured(), compiled()], tracking)
        store = open_store(tracking, tmp_path / "client")
        capfd.readouterr()
        done = ingest(store, written, None)
        assert (done.measured, done.compiled) == (TrackedCounts(new=5), TrackedCounts(new=4))
        assert capfd.readouterr().out == ""
        again = ingest(store, source(tmp_path / "client"), None)
        assert (again.measured, again.compiled) == (TrackedCounts(same=5), TrackedCounts(same=4))
        winner = done.champions[0]
        assert store.client.get_model_version_by_alias(winner.model, "cpu").run_id == winner.run
        paths = {entry.path for entry in store.client.list_artifacts(winner.run)}
        assert paths == {"kernel", "result.json", "task.json"}
        assert done.links.tasks[0].charts.startswith(base)
    assert not (tmp_path / "client" / "mlflow" / "artifacts").exists()
