"""`make ui`: the server's command line and the links that are printed."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from pipeline.cli.main import main
from pipeline.records.record import to_json
from pipeline.records.results.tracked import (
    NotTracked,
    TaskLinks,
    Tracked,
    TrackedCounts,
    TrackingLinks,
    TrackOutput,
)
from pipeline.store.atomic import write_atomic
from pipeline.track import mlflow_ui
from pipeline.track import mlflow_ui as ui
from tests.track.mlflow_server import wait_for_health


def _tracked(uri: str = "sqlite:////x/mlflow.db", tasks: int = 2) -> Tracked:
    base = mlflow_ui.base(uri)
    return Tracked(
        uri=uri,
        experiments={"kernelmill": "1"},
        sweep="s",
        measured=TrackedCounts(new=1),
        compiled=TrackedCounts(),
        champions=(),
        links=TrackingLinks(
            charts=f"{base}/#/charts",
            compiled=None,
            runs=f"{base}/#/runs",
            sweep=f"{base}/#/sweep",
            models=f"{base}/#/models",
            tasks=tuple(
                TaskLinks(
                    task=f"t{number}",
                    title=f"task {number}",
                    runs=1,
                    charts=f"{base}/#/t{number}",
                    compare="",
                    compared=1,
                )
                for number in range(tasks)
            ),
        ),
        seconds=1.0,
    )


def _write(root: Path, name: str, result: Tracked | NotTracked) -> None:
    output = TrackOutput(experiment="sample", result=result)
    write_atomic(root / "track" / name / "tracked.json", to_json(output))


def test_the_server_listens_on_loopback_only(tmp_path: Path) -> None:
    """And keeps its database and artifacts under the root."""
    command = ui.server_command(tmp_path, 5001)
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--backend-store-uri") + 1] == f"sqlite:///{tmp_path}/mlflow/mlflow.db"
    assert command[command.index("--artifacts-destination") + 1] == f"{tmp_path}/mlflow/artifacts"


def test_links_follow_the_port() -> None:
    """Links were recorded for the default one."""
    text = ui.overview(_tracked(), "http://127.0.0.1:5001", Path())
    assert "http://127.0.0.1:5001/#/t0" in text
    assert ":5000" not in text


def test_many_tasks_are_cut_with_their_number() -> None:
    """The report holds all of them."""
    text = ui.overview(_tracked(tasks=15), "http://127.0.0.1:5000", Path())
    assert "task 11" in text
    assert "task 12" not in text
    assert "… and 3 more in the report" in text


def test_tasks_of_earlier_runs_are_linked(tmp_path: Path) -> None:
    """After those of the last run; a page that both have is the last one's."""
    first, last = _tracked(tasks=2), _tracked(tasks=1)
    for age, name, each in ((10, "first", first), (0, "last", last)):
        _write(tmp_path, name, each)
        at = time.time() - age
        os.utime(tmp_path / "track" / name / "tracked.json", (at, at))
    lines = ui.overview(last, "http://127.0.0.1:5000", tmp_path).splitlines()
    after = lines[lines.index("Which tunables matter, task by task:") + 1 :]
    assert after == [
        "  task 0  http://127.0.0.1:5000/#/t0",
        "The same for tasks of earlier runs, the latest first:",
        "  task 1  http://127.0.0.1:5000/#/t1",
    ]


def test_without_results_it_says_how_to_get_some(tmp_path: Path) -> None:
    """The UI opens all the same."""
    text = "Nothing was tracked yet: `make run` does. http://127.0.0.1:5000"
    assert ui.overview(None, "http://127.0.0.1:5000", tmp_path) == text
    (tmp_path / "submissions").mkdir()
    assert "submissions" in ui.overview(None, "http://127.0.0.1:5000", tmp_path)


def test_the_first_link_is_the_page_to_begin_with() -> None:
    """The registered winners, else all runs, else what there is: not MLflow's home page, which hides runs."""
    links = _tracked().links
    first = ui.overview(_tracked(), "http://127.0.0.1:5000", Path()).splitlines()[0]
    assert first.split() == ["winners", links.first]
    unregistered = msgspec.structs.replace(links, charts=None)
    assert unregistered.first == links.runs
    assert msgspec.structs.replace(unregistered, runs=None).first == links.sweep


def test_the_latest_tracked_experiment_is_shown(tmp_path: Path) -> None:
    """One that was not tracked is passed over."""
    _write(tmp_path, "a", _tracked())
    _write(tmp_path, "b", NotTracked(reason="disabled"))
    assert ui.latest(tmp_path) == _tracked()
    assert ui.latest(tmp_path / "empty") is None


def test_a_taken_port_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says which, and how to use another one."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["ui", "--root", str(tmp_path), "--port", str(port)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"error: port {port} on 127.0.0.1 is taken")
    assert f"--port {port + 1}" in lines[0]


def test_results_on_a_server_are_looked_at_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is started."""
    _write(tmp_path, "a", _tracked("http://mlflow.example.org"))
    assert main(["ui", "--root", str(tmp_path)]) == 0
    assert "http://mlflow.example.org/#/charts" in capsys.readouterr().out
    assert not (tmp_path / "mlflow").exists()


@pytest.mark.slow
def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    """Exit code 0, without the server's traceback, and the port is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "pipeline", "ui", "--root", str(tmp_path), "--port", str(port)]
    log = tmp_path / "log"
    with log.open("wb") as stream, subprocess.Popen(command, stdout=stream, stderr=stream) as process:
        wait_for_health(f"http://127.0.0.1:{port}", process, log)
        process.send_signal(signal.SIGINT)
    assert process.returncode == 0
    assert "Traceback" not in log.read_text()
    ui.require_free(port)
