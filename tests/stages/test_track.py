"""The track stage from files to files."""

from pathlib import Path

import msgspec
import pytest

from pipeline.records.configuration.stage_settings import Tracking
from pipeline.records.planning.specs import AggregateSpec
from pipeline.records.record import read_record, to_json
from pipeline.records.results.tracked import NotTracked, Tracked, TrackedCounts, TrackOutput
from pipeline.stages import track
from pipeline.track.stores.mlflow_store import open_store
from tests.track.small_run import TRACKING, measured, write_source


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The files of a small run; no store yet."""
    write_source(tmp_path, [measured()])
    return tmp_path


def _arguments(root: Path, *more: str) -> list[str]:
    folder = root / "aggregate" / "sample"
    return [
        *("--spec", str(root / "spec.json"), "--aggregate", str(folder)),
        *("--out", str(root / "tracked.json"), "--root", str(root), *more),
    ]


def _set(root: Path, tracking: Tracking) -> None:
    spec = read_record(root / "spec.json", AggregateSpec)
    (root / "spec.json").write_bytes(to_json(msgspec.structs.replace(spec, tracking=tracking)))


def test_results_arrive_in_a_store_that_is_made(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The record says where and how many; the second time nothing is new; the report joins the sweep."""
    assert track.main(_arguments(root)) == 0
    result = read_record(root / "tracked.json", TrackOutput).result
    assert isinstance(result, Tracked)
    assert result.measured == TrackedCounts(new=5)
    assert result.champions[0].alias == "cpu"
    line = capsys.readouterr().err.splitlines()
    assert len(line) == 1
    assert line[0].startswith("track sample: measured 5 new, only compiled 0, 1 winner registered · ")

    assert track.main(_arguments(root)) == 0
    again = read_record(root / "tracked.json", TrackOutput).result
    assert isinstance(again, Tracked)
    assert again.measured == TrackedCounts(same=5)

    report = root / "report.html"
    report.write_text("<p>the report</p>")
    attach = ["--attach", str(root / "tracked.json"), "--report", str(report), "--root", str(root)]
    assert track.main(["--spec", str(root / "spec.json"), *attach]) == 0
    client = open_store(TRACKING, root).client
    assert "report.html" in {entry.path for entry in client.list_artifacts(result.sweep)}


def test_disabled_is_a_record_that_says_so(root: Path) -> None:
    """Nothing is written but the record."""
    _set(root, msgspec.structs.replace(TRACKING, name="disabled", enabled=False))
    assert track.main(_arguments(root)) == 0
    result = read_record(root / "tracked.json", TrackOutput).result
    assert result == NotTracked(reason="tracking=disabled logs nothing")
    assert not (root / "mlflow").exists()


def test_a_server_that_is_down_is_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And exit code 1, and no record: the next run tries again."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    _set(root, msgspec.structs.replace(TRACKING, uri="http://127.0.0.1:9"))
    assert track.main(_arguments(root)) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: MLflow at http://127.0.0.1:9 does not answer")
    assert not (root / "tracked.json").exists()


def test_a_missing_argument_is_told() -> None:
    """By argparse, with the usage."""
    with pytest.raises(SystemExit):
        track.main(["--spec", "x"])
    with pytest.raises(SystemExit):
        track.main(["--spec", "x", "--attach", "y"])
