"""A job that checks the device: what its `run` becomes, and the way there."""

import json
import sys
import zipfile
from pathlib import Path

import pytest

from pipeline.cli.main import main
from pipeline.execution.bundle import bootstrap
from tests.paths import ROOT

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def become(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that a job would become."""
    commands: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "_become", lambda folder, job, command: commands.append(command[3:]) or 0)
    return commands


def job_of(path: Path, **changes: object) -> Path:
    """A job without a project."""
    job = {"runs": bootstrap.EXPERIMENT, "overrides": ["experiment=gpu"], "python": HERE, "needed": []}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(bootstrap.JOB, json.dumps(job | {"identity": "a", "extras": {}} | changes))
    return path


def test_what_run_becomes(become: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment or a check; files lie where it was started."""
    monkeypatch.chdir(tmp_path)
    work = ["--work", str(tmp_path / "work")]
    monkeypatch.setattr(sys, "argv", [str(job_of(tmp_path / "a.pyz"))])
    assert bootstrap.main(["run", *work, "--minutes", "3"]) == 0
    assert bootstrap.main(["show", *work, "b.kmb"]) == 0
    monkeypatch.setattr(sys, "argv", [str(job_of(tmp_path / "b.pyz", runs=bootstrap.CHECK, overrides=[]))])
    assert bootstrap.main(["run", *work]) == 0
    assert bootstrap.main(["run", *work, "--out", "c.json"]) == 0
    assert become == [
        ["bundle", "run", "experiment=gpu", "--minutes", "3", "--out", str(tmp_path / "results.kmb")],
        ["bundle", "show", str(tmp_path / "b.kmb")],
        ["check", "--device", "--out", str(tmp_path / "device_check.json")],
        ["check", "--device", "--out", str(tmp_path / "c.json")],
    ]


@pytest.mark.parametrize("more", [["experiment=smoke"], ["--after", str(ROOT / "LICENSE")]])
def test_it_takes_no_experiment(more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither overrides nor earlier bundles."""
    assert main(["bundle", "pack", "--check", *more, "--out", str(tmp_path / "job.pyz")]) == 2
    assert "--check takes no overrides" in capsys.readouterr().err
    assert not (tmp_path / "job.pyz").exists()
